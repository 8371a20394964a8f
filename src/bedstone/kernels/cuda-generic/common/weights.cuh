// Rows of weights in each checkpoint format, and what a thread multiplies of them at a time.
//
// A format gives, for a row of k values: `bytes(k)`; `value(row, i)`, one value; and units, the
// share of a row that one thread decodes at once: UNIT values in pieces of four consecutive ones,
// the first of piece p of unit u at `at(u, p)`. `dot(row, u, x, sum)` is a unit's product with the
// UNIT activations of its pieces, whose plain sum the caller has at hand.
//
// Codes become floats by bits: a byte under the exponent of 2^23 is 2^23 plus itself, exactly.
#pragma once
#include "abi.cuh"

#define BS_F32 0
#define BS_F16 1
#define BS_BF16 2
#define BS_Q8_0 3
#define BS_Q4_0 4
#define BS_Q4_1 5
#define BS_Q4_K 6
#define BS_Q6_K 7

// Byte `n` of a word as a float, less `bias`.
template <int N>
static __device__ __forceinline__ float byte_f32(u32 word, float bias) {
    return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7540 | N)) - (8388608.f + bias);
}

// The four bytes of a word times four activations, each less `bias`.
static __device__ __forceinline__ float dot_bytes(u32 word, const float *x, float bias, float sum) {
    sum = fmaf(byte_f32<0>(word, bias), x[0], sum);
    sum = fmaf(byte_f32<1>(word, bias), x[1], sum);
    sum = fmaf(byte_f32<2>(word, bias), x[2], sum);
    return fmaf(byte_f32<3>(word, bias), x[3], sum);
}

// A word that lies on an even byte.
static __device__ __forceinline__ u32 word_at(const u8 *p) {
    return (u32)((const u16 *)p)[0] | (u32)((const u16 *)p)[1] << 16;
}

static __device__ __forceinline__ float half_at(const u8 *p) {
    return to_f32(f16{*(const u16 *)p});
}

// Formats whose values lie one after another.
template <class T>
struct plain_format {
    typedef T element;
    static constexpr int UNIT = 8, BLOCK = 1;
    static __device__ __forceinline__ constexpr i64 bytes(int k) { return (i64)k * (i64)sizeof(T); }
    static __device__ __forceinline__ float value(const u8 *row, int i) {
        return to_f32(((const T *)row)[i]);
    }
    static __device__ __forceinline__ int at(int u, int p) { return 8 * u + 4 * p; }
};

struct format_f32 : plain_format<float> {
    static __device__ __forceinline__ float dot(const u8 *row, int u, const float *x, float) {
        const float4 *w = (const float4 *)row + 2 * u;
        float4 a = w[0], b = w[1];
        float sum = fmaf(a.y, x[1], a.x * x[0]);
        sum = fmaf(a.w, x[3], fmaf(a.z, x[2], sum));
        sum = fmaf(b.y, x[5], fmaf(b.x, x[4], sum));
        return fmaf(b.w, x[7], fmaf(b.z, x[6], sum));
    }
};

struct format_bf16 : plain_format<bf16> {
    static __device__ __forceinline__ float dot(const u8 *row, int u, const float *x, float) {
        uint4 w = ((const uint4 *)row)[u];
        const u32 *pair = &w.x;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            sum = fmaf(__uint_as_float(pair[i] << 16), x[2 * i], sum);
            sum = fmaf(__uint_as_float(pair[i] & 0xffff0000u), x[2 * i + 1], sum);
        }
        return sum;
    }
};

struct format_f16 : plain_format<f16> {
    static __device__ __forceinline__ float dot(const u8 *row, int u, const float *x, float) {
        uint4 w = ((const uint4 *)row)[u];
        const u32 *pair = &w.x;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            sum = fmaf(to_f32(f16{(u16)pair[i]}), x[2 * i], sum);
            sum = fmaf(to_f32(f16{(u16)(pair[i] >> 16)}), x[2 * i + 1], sum);
        }
        return sum;
    }
};

// 32 values: a scale and signed bytes. A unit is a half.
struct format_q8_0 {
    static constexpr int UNIT = 16, BLOCK = 32;
    static __device__ __forceinline__ constexpr i64 bytes(int k) { return (i64)(k / 32) * 34; }
    static __device__ __forceinline__ float value(const u8 *row, int i) {
        const u8 *block = row + i / 32 * 34;
        return half_at(block) * (float)(i8)block[2 + i % 32];
    }
    static __device__ __forceinline__ int at(int u, int p) { return 16 * u + 4 * p; }
    // A unit's four words, which lie on an even byte: words that lie on four around them, shifted.
    static __device__ __forceinline__ void words(const u8 *at, u32 (&made)[4]) {
        u32 odd = (u32)(u64)at & 2;
        const u32 *around = (const u32 *)(at - odd);
        u32 word[5] = {around[0], around[1], around[2], around[3], ((const u16 *)at)[7]};
#pragma unroll
        for (int i = 0; i < 4; ++i) made[i] = __funnelshift_r(word[i], word[i + 1], 8 * odd);
    }
    static __device__ __forceinline__ float dot(const u8 *row, int u, const float *x, float) {
        const u8 *block = row + u / 2 * 34;
        u32 codes[4];
        words(block + 2 + u % 2 * 16, codes);
        float sum = 0;
        // the sign bit turned over, a code is a byte 128 above itself
#pragma unroll
        for (int p = 0; p < 4; ++p) sum = dot_bytes(codes[p] ^ 0x80808080u, x + 4 * p, 128.f, sum);
        return half_at(block) * sum;
    }
};

// 32 values: a scale, and nibbles 8 above themselves; value i + 16 lies above value i. A unit is
// four bytes.
struct format_q4_0 {
    static constexpr int UNIT = 8, BLOCK = 32;
    static __device__ __forceinline__ constexpr i64 bytes(int k) { return (i64)(k / 32) * 18; }
    static __device__ __forceinline__ float value(const u8 *row, int i) {
        const u8 *block = row + i / 32 * 18;
        int code = block[2 + i % 16] >> (i % 32 / 16 * 4) & 15;
        return half_at(block) * (float)(code - 8);
    }
    static __device__ __forceinline__ int at(int u, int p) { return u / 4 * 32 + u % 4 * 4 + 16 * p; }
    static __device__ __forceinline__ float dot(const u8 *row, int u, const float *x, float) {
        const u8 *block = row + u / 4 * 18;
        u32 codes = word_at(block + 2 + u % 4 * 4);
        float sum = dot_bytes(codes & 0x0f0f0f0fu, x, 8.f, 0);
        return half_at(block) * dot_bytes(codes >> 4 & 0x0f0f0f0fu, x + 4, 8.f, sum);
    }
};

// 32 values: a scale, a least value, and nibbles as in q4_0.
struct format_q4_1 {
    static constexpr int UNIT = 8, BLOCK = 32;
    static __device__ __forceinline__ constexpr i64 bytes(int k) { return (i64)(k / 32) * 20; }
    static __device__ __forceinline__ float value(const u8 *row, int i) {
        const u8 *block = row + i / 32 * 20;
        int code = block[4 + i % 16] >> (i % 32 / 16 * 4) & 15;
        return half_at(block) * (float)code + half_at(block + 2);
    }
    static __device__ __forceinline__ int at(int u, int p) { return format_q4_0::at(u, p); }
    static __device__ __forceinline__ float dot(const u8 *row, int u, const float *x, float all) {
        const u32 *block = (const u32 *)(row + u / 4 * 20);
        u32 head = block[0], codes = block[1 + u % 4];
        float sum = dot_bytes(codes & 0x0f0f0f0fu, x, 0, 0);
        sum = dot_bytes(codes >> 4 & 0x0f0f0f0fu, x + 4, 0, sum);
        return fmaf(to_f32(f16{(u16)head}), sum, to_f32(f16{(u16)(head >> 16)}) * all);
    }
};

// 256 values in eight blocks of 32, each with a scale and a least value of six bits; nibbles of
// blocks 2j and 2j + 1 share 32 bytes. A unit is half of those: sixteen values of each.
struct format_q4_k {
    static constexpr int UNIT = 32, BLOCK = 256;
    static __device__ __forceinline__ constexpr i64 bytes(int k) { return (i64)(k / 256) * 144; }
    // Scale and least value of one block, in six bits each.
    static __device__ __forceinline__ void levels(const u8 *packed, int block, int &scale, int &least) {
        if (block < 4) {
            scale = packed[block] & 63;
            least = packed[block + 4] & 63;
        } else {
            scale = (packed[block + 4] & 15) | packed[block - 4] >> 6 << 4;
            least = packed[block + 4] >> 4 | packed[block] >> 6 << 4;
        }
    }
    static __device__ __forceinline__ float value(const u8 *row, int i) {
        const u8 *all = row + i / 256 * 144;
        int block = i % 256 / 32, scale, least;
        levels(all + 4, block, scale, least);
        int code = all[16 + block / 2 * 32 + i % 32] >> (block % 2 * 4) & 15;
        return half_at(all) * (float)scale * (float)code - half_at(all + 2) * (float)least;
    }
    static __device__ __forceinline__ int at(int u, int p) {
        return u / 8 * 256 + u % 8 / 2 * 64 + u % 2 * 16 + p / 4 * 32 + p % 4 * 4;
    }
    // Of blocks 2 pair and 2 pair + 1: scales and least values, a byte each.
    static __device__ __forceinline__ void pair_levels(u32 low, u32 high, u32 rest, int pair, u32 &scales, u32 &least) {
        pair_levels(low, high, rest, pair >= 2, pair % 2 * 16, scales, least);
    }
    static __device__ __forceinline__ void pair_levels(u32 low, u32 high, u32 rest, bool later, int shift, u32 &scales, u32 &least) {
        int above = later ? shift + 4 : shift;
        u32 own = later ? 0x0f0fu : 0x3f3fu, more = later ? 0x3030u : 0;
        scales = ((later ? rest : low) >> shift & own) | (low >> (shift + 2) & more);
        least = ((later ? rest : high) >> above & own) | (high >> (shift + 2) & more);
    }
    static __device__ __forceinline__ float dot(const u8 *row, int u, const float *x, float) {
        const u8 *all = row + u / 8 * 144;
        int pair = u % 8 / 2;
        const uint4 head = *(const uint4 *)all, codes = *(const uint4 *)(all + 16 + pair * 32 + u % 2 * 16);
        const u32 *word = &codes.x;
        float low = 0, high = 0, low_all = 0, high_all = 0;
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            low = dot_bytes(word[p] & 0x0f0f0f0fu, x + 4 * p, 0, low);
            high = dot_bytes(word[p] >> 4 & 0x0f0f0f0fu, x + 16 + 4 * p, 0, high);
            low_all += (x[4 * p] + x[4 * p + 1]) + (x[4 * p + 2] + x[4 * p + 3]);
            high_all += (x[16 + 4 * p] + x[17 + 4 * p]) + (x[18 + 4 * p] + x[19 + 4 * p]);
        }
        u32 scales, least;
        pair_levels(head.y, head.z, head.w, pair, scales, least);
        float sum = fmaf(byte_f32<0>(scales, 0), low, byte_f32<1>(scales, 0) * high);
        float taken = fmaf(byte_f32<0>(least, 0), low_all, byte_f32<1>(least, 0) * high_all);
        return fmaf(to_f32(f16{(u16)head.x}), sum, -to_f32(f16{(u16)(head.x >> 16)}) * taken);
    }
};

// 256 values in 16 blocks of 16 with a signed scale each; codes of six bits, 32 above themselves,
// in four low and two high bits. Half the values share 64 low and 32 high bytes; a unit is four
// columns of a half: values i to i + 3, and those 32, 64 and 96 further on.
struct format_q6_k {
    static constexpr int UNIT = 16, BLOCK = 256;
    static __device__ __forceinline__ constexpr i64 bytes(int k) { return (i64)(k / 256) * 210; }
    static __device__ __forceinline__ float value(const u8 *row, int i) {
        const u8 *all = row + i / 256 * 210;
        int half = i % 256 / 128, quarter = i % 128 / 32, column = i % 32;
        int low = all[half * 64 + quarter % 2 * 32 + column] >> (quarter / 2 * 4) & 15;
        int high = all[128 + half * 32 + column] >> (2 * quarter) & 3;
        float scale = half_at(all + 208) * (float)(i8)all[192 + i % 256 / 16];
        return scale * (float)((low | high << 4) - 32);
    }
    static __device__ __forceinline__ int at(int u, int p) {
        return u / 16 * 256 + u % 16 / 8 * 128 + u % 8 * 4 + 32 * p;
    }
    // The codes of a unit, a word for each of its pieces.
    static __device__ __forceinline__ void six_bits(const u8 *all, int half, int column, u32 (&made)[4]) {
        u32 first = word_at(all + half * 64 + column), second = word_at(all + half * 64 + 32 + column);
        u32 high = word_at(all + 128 + half * 32 + column);
        made[0] = (first & 0x0f0f0f0fu) | (high & 0x03030303u) << 4;
        made[1] = (second & 0x0f0f0f0fu) | (high >> 2 & 0x03030303u) << 4;
        made[2] = (first >> 4 & 0x0f0f0f0fu) | (high >> 4 & 0x03030303u) << 4;
        made[3] = (second >> 4 & 0x0f0f0f0fu) | (high >> 6 & 0x03030303u) << 4;
    }
    static __device__ __forceinline__ float dot(const u8 *row, int u, const float *x, float) {
        const u8 *all = row + u / 16 * 210;
        int half = u % 16 / 8, column = u % 8 * 4;
        u32 codes[4];
        six_bits(all, half, column, codes);
        const u8 *scales = all + 192 + half * 8 + column / 16;
        float sum = 0;
#pragma unroll
        for (int p = 0; p < 4; ++p)
            sum = fmaf((float)(i8)scales[2 * p], dot_bytes(codes[p], x + 4 * p, 32.f, 0), sum);
        return half_at(all + 208) * sum;
    }
};

// The lanes that share a row of so many units: a power of two from 32 to 256. The products of a mixture go
// by it, so that all have one order of summing: a lane's units are `lanes` apart.
static __device__ __forceinline__ int lanes_of(int units) {
    int lanes = 32;
    while (lanes < units && lanes < 256) lanes *= 2;
    return lanes;
}

#ifdef BS_FORMAT
#if BS_FORMAT == BS_F32
typedef format_f32 format;
#define BS_NAME f32
#elif BS_FORMAT == BS_F16
typedef format_f16 format;
#define BS_NAME f16
#elif BS_FORMAT == BS_BF16
typedef format_bf16 format;
#define BS_NAME bf16
#elif BS_FORMAT == BS_Q8_0
typedef format_q8_0 format;
#define BS_NAME q8_0
#elif BS_FORMAT == BS_Q4_0
typedef format_q4_0 format;
#define BS_NAME q4_0
#elif BS_FORMAT == BS_Q4_1
typedef format_q4_1 format;
#define BS_NAME q4_1
#elif BS_FORMAT == BS_Q4_K
typedef format_q4_k format;
#define BS_NAME q4_k
#elif BS_FORMAT == BS_Q6_K
typedef format_q6_k format;
#define BS_NAME q6_k
#endif

// `BS_ENTRY(linear_, _rows)` is `linear_q8_0_rows`.
#define BS_JOIN_(stem, name, ending) stem##name##ending
#define BS_JOIN(stem, name, ending) BS_JOIN_(stem, name, ending)
#define BS_ENTRY(stem, ending) BS_JOIN(stem, BS_NAME, ending)
#endif
