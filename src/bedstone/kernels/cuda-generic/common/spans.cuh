// Sixteen rows of weights in blocks by rows of activations in eight bits, on the matrix units.
//
// A span is 256 values. Lane 4g + t of a warp has rows g and g + 8 of sixteen. Blocks of a row have scales of
// their own, so their products must stay apart: each is a column of the instruction, whose other operand is
// activations in that column and zeros in all others. Lane 4g + t gives column g and receives columns 2t and
// 2t + 1. What a lane adds up of a row hangs on nothing but the format and k.
#pragma once
#include "eight_bits.cuh"

#define GROUP 16

// c + a b: 16 rows of 32 values by eight columns; a's are bytes with a sign or without.
template <bool SIGNED>
static __device__ __forceinline__ void multiply_bytes(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    if constexpr (SIGNED)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Where a lane stands.
struct place {
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
};

// What lanes have of rows g and g + 8, added up: lane t = 0 gets the first, t = 1 the second.
static __device__ __forceinline__ float over_lanes(const place &p, const float (&sum)[2]) {
    bool odd = p.t & 1;
    float pair = (odd ? sum[1] : sum[0]) + __shfl_xor_sync(BS_FULL, odd ? sum[0] : sum[1], 1);
    return pair + __shfl_xor_sync(BS_FULL, pair, 2);
}

// Formats of blocks of 32 values. FORMAT gives a lane's eight values of a block, 4t to 4t + 3 and those 16
// further on, and adds a block's product to a sum.
template <class FORMAT>
struct spans_of_32 {
    template <int V>
    static __device__ __forceinline__ void add(float (&sum)[V][2], const u8 *low, const u8 *high, const coded_span &x) {
        place p;
        u32 near[V], far[V];
        int c[V][4] = {};
#pragma unroll
        for (int r = 0; r < V; ++r) near[r] = x.words(r)[8 * p.g + p.t], far[r] = x.words(r)[8 * p.g + 4 + p.t];
#pragma unroll
        for (int b = 0; b < 8; ++b) {
            u32 a[4];
            FORMAT::values(low + b * FORMAT::BYTES, p.t, a[0], a[2]);
            FORMAT::values(high + b * FORMAT::BYTES, p.t, a[1], a[3]);
#pragma unroll
            for (int r = 0; r < V; ++r)
                multiply_bytes<FORMAT::SIGNED>(c[r], a, p.g == b ? near[r] : 0, p.g == b ? far[r] : 0);
        }
        // a block past the row's end is the last again, times nothing
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            int at = min(2 * p.t + i, x.blocks - 1) * FORMAT::BYTES;
#pragma unroll
            for (int r = 0; r < V; ++r) {
                float2 by = x.scales(r)[2 * p.t + i];
                FORMAT::add_block(sum[r][0], low + at, by, c[r][i]);
                FORMAT::add_block(sum[r][1], high + at, by, c[r][2 + i]);
            }
        }
    }
};

struct block_q8_0 {
    static constexpr int BYTES = 34;
    static constexpr bool SIGNED = true;
    static __device__ __forceinline__ void values(const u8 *block, int t, u32 &near, u32 &far) {
        near = word_at(block + 2 + 4 * t), far = word_at(block + 18 + 4 * t);
    }
    static __device__ __forceinline__ void add_block(float &sum, const u8 *block, float2 by, int product) {
        sum = fmaf(half_at(block) * by.x, (float)product, sum);
    }
};

// A nibble less 8 as the upper half of a signed byte.
struct block_q4_0 {
    static constexpr int BYTES = 18;
    static constexpr bool SIGNED = true;
    static __device__ __forceinline__ void values(const u8 *block, int t, u32 &near, u32 &far) {
        u32 both = word_at(block + 2 + 4 * t);
        near = (both << 4 & 0xf0f0f0f0u) ^ 0x80808080u, far = (both & 0xf0f0f0f0u) ^ 0x80808080u;
    }
    static __device__ __forceinline__ void add_block(float &sum, const u8 *block, float2 by, int product) {
        sum = fmaf(half_at(block) * (by.x * 0.0625f), (float)product, sum);
    }
};

struct block_q4_1 {
    static constexpr int BYTES = 20;
    static constexpr bool SIGNED = false;
    static __device__ __forceinline__ void values(const u8 *block, int t, u32 &near, u32 &far) {
        u32 both = ((const u32 *)block)[1 + t];
        near = both & 0x0f0f0f0fu, far = both >> 4 & 0x0f0f0f0fu;
    }
    static __device__ __forceinline__ void add_block(float &sum, const u8 *block, float2 by, int product) {
        u32 head = *(const u32 *)block;
        sum = fmaf(to_f32(f16{(u16)head}) * by.x, (float)product, sum);
        sum = fmaf(to_f32(f16{(u16)(head >> 16)}), by.y, sum);
    }
};

// What two blocks of a row add: sums of codes, the second's sixteen times itself, by their levels and a row's scales.
static __device__ __forceinline__ float scaled_pair(float sum, u32 head, u32 scales, u32 least, const float4 &by, int one, int other) {
    float product = by.x * (float)((int)(scales & 255) * one);
    product = fmaf(by.z * 0.0625f, (float)((int)(scales >> 8) * other), product);
    float taken = fmaf(byte_f32<0>(least, 0), by.y, byte_f32<1>(least, 0) * by.w);
    sum = fmaf(to_f32(f16{(u16)head}), product, sum);
    return fmaf(-to_f32(f16{(u16)(head >> 16)}), taken, sum);
}

// Half a span is four pieces of sixteen bytes, one for each t: half of two blocks that follow each other.
struct spans_of_q4_k {
    template <int V>
    static __device__ __forceinline__ void add(float (&sum)[V][2], const u8 *low, const u8 *high, const coded_span &x) {
        place p;
        int c[V][4] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            // whether this lane's column is the first, or the second, of the blocks of its piece
            bool here = p.g / 4 == h && p.g % 4 / 2 == p.t / 2, first = here && p.g % 2 == 0, second = here && p.g % 2;
            int at = 16 + 64 * h + 16 * p.t;
            const uint4 rows[2] = {*(const uint4 *)(low + at), *(const uint4 *)(high + at)};
            const u32 *v = &rows[0].x, *w = &rows[1].x;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                // high nibbles stay where they are, sixteen times themselves
                u32 a[4] = {v[i] & 0x0f0f0f0fu, w[i] & 0x0f0f0f0fu, v[i] & 0xf0f0f0f0u, w[i] & 0xf0f0f0f0u};
#pragma unroll
                for (int r = 0; r < V; ++r) {
                    u32 mine = x.words(r)[8 * p.g + p.t % 2 * 4 + i];
                    multiply_bytes<false>(c[r], a, first ? mine : 0, second ? mine : 0);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint4 head = *(const uint4 *)(i ? high : low);
            u32 scales, least;
            format_q4_k::pair_levels(head.y, head.z, head.w, p.t, scales, least);
#pragma unroll
            for (int r = 0; r < V; ++r) {
                const float4 &by = *(const float4 *)(x.scales(r) + 2 * p.t);
                sum[r][i] = scaled_pair(sum[r][i], head.x, scales, least, by, c[r][2 * i], c[r][2 * i + 1]);
            }
        }
    }
};

// Half a span at a time: its eight blocks of sixteen are the columns. The two of a quarter share an
// instruction, the first in one half of its depth. A code less 32 is the upper six bits of a signed byte.
struct spans_of_q6_k {
    template <int V>
    static __device__ __forceinline__ void add(float (&sum)[V][2], const u8 *low, const u8 *high, const coded_span &x) {
        place p;
        float made[V][2] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            u32 v[2][4], w[2][4];
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                six_bits(low, h, 16 * s + 4 * p.t, v[s]);
                six_bits(high, h, 16 * s + 4 * p.t, w[s]);
            }
            int at = 192 + 8 * h + 2 * p.t;
            const i8 *scales[2] = {(const i8 *)low + at, (const i8 *)high + at};
            int levels[2][2] = {{scales[0][0], scales[0][1]}, {scales[1][0], scales[1][1]}};
#pragma unroll
            for (int r = 0; r < V; ++r) {
                u32 mine = x.words(r)[32 * h + 4 * p.g + p.t];
                int c[4] = {};
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    u32 a[4] = {v[0][q], w[0][q], v[1][q], w[1][q]};
                    multiply_bytes<true>(c, a, p.g == 2 * q ? mine : 0, p.g == 2 * q + 1 ? mine : 0);
                }
                float by = x.scales(r)[4 * h + p.t].x;
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    made[r][i] = fmaf(by, (float)(levels[i][0] * c[2 * i] + levels[i][1] * c[2 * i + 1]), made[r][i]);
            }
        }
        float all[2] = {half_at(low + 208) * 0.25f, half_at(high + 208) * 0.25f};
#pragma unroll
        for (int r = 0; r < V; ++r)
            sum[r][0] = fmaf(all[0], made[r][0], sum[r][0]), sum[r][1] = fmaf(all[1], made[r][1], sum[r][1]);
    }
    static __device__ __forceinline__ void six_bits(const u8 *all, int half, int column, u32 (&made)[4]) {
        u32 first = word_at(all + half * 64 + column), second = word_at(all + half * 64 + 32 + column);
        u32 upper = word_at(all + 128 + half * 32 + column);
        made[0] = (first << 2 & 0x3c3c3c3cu) | ((upper << 6 & 0xc0c0c0c0u) ^ 0x80808080u);
        made[1] = (second << 2 & 0x3c3c3c3cu) | ((upper << 4 & 0xc0c0c0c0u) ^ 0x80808080u);
        made[2] = (first >> 2 & 0x3c3c3c3cu) | ((upper << 2 & 0xc0c0c0c0u) ^ 0x80808080u);
        made[3] = (second >> 2 & 0x3c3c3c3cu) | ((upper & 0xc0c0c0c0u) ^ 0x80808080u);
    }
};

template <class F>
struct spans_of;
template <>
struct spans_of<format_q8_0> : spans_of_32<block_q8_0> {};
template <>
struct spans_of<format_q4_0> : spans_of_32<block_q4_0> {};
template <>
struct spans_of<format_q4_1> : spans_of_32<block_q4_1> {};
template <>
struct spans_of<format_q4_k> : spans_of_q4_k {};
template <>
struct spans_of<format_q6_k> : spans_of_q6_k {};
