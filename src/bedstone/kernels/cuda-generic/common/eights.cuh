// Eight consecutive values of a row of weights as bfloat16, for the matrix units.
#pragma once
#include "weights.cuh"

// Four pairs, the first of each in the low half.
struct Eight {
    u32 pair[4];
};

static __device__ __forceinline__ Eight load_eight(const void *from) {
    uint4 v = *(const uint4 *)from;
    return Eight{{v.x, v.y, v.z, v.w}};
}

// scale * (byte - bias) + offset of the eight bytes of two words.
static __device__ __forceinline__ Eight eight_bytes(u32 a, u32 b, float bias, float scale, float offset) {
    u32 words[2] = {a, b};
    Eight v;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 w = words[i];
        v.pair[2 * i] = pack_bf16(scale * byte_f32<0>(w, bias) + offset, scale * byte_f32<1>(w, bias) + offset);
        v.pair[2 * i + 1] = pack_bf16(scale * byte_f32<2>(w, bias) + offset, scale * byte_f32<3>(w, bias) + offset);
    }
    return v;
}

// Values [i, i + 8) of a row that begins on 16 bytes where its values lie one after another; i is a
// multiple of eight.
template <class F>
struct Eights;

template <>
struct Eights<format_bf16> {
    static __device__ __forceinline__ Eight at(const u8 *row, int i) { return load_eight(row + 2 * i); }
};

template <>
struct Eights<format_f16> {
    static __device__ __forceinline__ Eight at(const u8 *row, int i) {
        Eight v = load_eight(row + 2 * i);
#pragma unroll
        for (int j = 0; j < 4; j++)
            v.pair[j] = pack_bf16(to_f32(f16{(u16)v.pair[j]}), to_f32(f16{(u16)(v.pair[j] >> 16)}));
        return v;
    }
};

template <>
struct Eights<format_q8_0> {
    static __device__ __forceinline__ Eight at(const u8 *row, int i) {
        const u8 *block = row + i / 32 * 34, *codes = block + 2 + i % 32;
        u32 a = word_at(codes) ^ 0x80808080u, b = word_at(codes + 4) ^ 0x80808080u;
        return eight_bytes(a, b, 128.f, half_at(block), 0.f);
    }
};

template <>
struct Eights<format_q4_0> {
    static __device__ __forceinline__ Eight at(const u8 *row, int i) {
        const u8 *block = row + i / 32 * 18, *codes = block + 2 + i % 16;
        int shift = i % 32 / 16 * 4;
        u32 a = word_at(codes) >> shift & 0x0f0f0f0fu, b = word_at(codes + 4) >> shift & 0x0f0f0f0fu;
        return eight_bytes(a, b, 8.f, half_at(block), 0.f);
    }
};

template <>
struct Eights<format_q4_1> {
    static __device__ __forceinline__ Eight at(const u8 *row, int i) {
        const u32 *block = (const u32 *)(row + i / 32 * 20), *codes = block + 1 + i % 16 / 4;
        int shift = i % 32 / 16 * 4;
        float scale = to_f32(f16{(u16)block[0]}), least = to_f32(f16{(u16)(block[0] >> 16)});
        return eight_bytes(codes[0] >> shift & 0x0f0f0f0fu, codes[1] >> shift & 0x0f0f0f0fu, 0.f, scale, least);
    }
};

template <>
struct Eights<format_q4_k> {
    static __device__ __forceinline__ Eight at(const u8 *row, int i) {
        const u8 *all = row + i / 256 * 144;
        int block = i % 256 / 32, shift = block % 2 * 4;
        const u32 *codes = (const u32 *)(all + 16 + block / 2 * 32 + i % 32);
        const u32 *head = (const u32 *)all;
        u32 scales, least, both = head[0];
        format_q4_k::pair_levels(head[1], head[2], head[3], block / 2, scales, least);
        float scale = to_f32(f16{(u16)both}) * (float)(scales >> (block % 2 * 8) & 255);
        float offset = to_f32(f16{(u16)(both >> 16)}) * (float)(least >> (block % 2 * 8) & 255);
        return eight_bytes(codes[0] >> shift & 0x0f0f0f0fu, codes[1] >> shift & 0x0f0f0f0fu, 0.f, scale, -offset);
    }
};

template <>
struct Eights<format_q6_k> {
    static __device__ __forceinline__ Eight at(const u8 *row, int i) {
        const u8 *all = row + i / 256 * 210;
        int half = i % 256 / 128, quarter = i % 128 / 32, column = i % 32;
        const u8 *low = all + half * 64 + quarter % 2 * 32 + column, *high = all + 128 + half * 32 + column;
        float scale = half_at(all + 208) * (float)(i8)all[192 + i % 256 / 16];
        u32 words[2];
#pragma unroll
        for (int j = 0; j < 2; j++)
            words[j] = (word_at(low + 4 * j) >> (quarter / 2 * 4) & 0x0f0f0f0fu)
                       | (word_at(high + 4 * j) >> (2 * quarter) & 0x03030303u) << 4;
        return eight_bytes(words[0], words[1], 32.f, scale, 0.f);
    }
};
