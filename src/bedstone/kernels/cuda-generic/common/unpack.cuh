// Eight consecutive values of a row of weights as bf16, each rounded once from what its format defines.
//
// `row` is where value 0 lies, in any memory, on an even byte; `i` is a multiple of eight.
#pragma once
#include "weights.cuh"

// The eight bytes of two words, each less `bias`, times a scale, plus `least`.
static __device__ __forceinline__ uint4 scaled_bytes(u32 low, u32 high, float bias, float scale, float least) {
    return make_uint4(
        pack_bf16(fmaf(byte_f32<0>(low, bias), scale, least), fmaf(byte_f32<1>(low, bias), scale, least)),
        pack_bf16(fmaf(byte_f32<2>(low, bias), scale, least), fmaf(byte_f32<3>(low, bias), scale, least)),
        pack_bf16(fmaf(byte_f32<0>(high, bias), scale, least), fmaf(byte_f32<1>(high, bias), scale, least)),
        pack_bf16(fmaf(byte_f32<2>(high, bias), scale, least), fmaf(byte_f32<3>(high, bias), scale, least)));
}

// The same of nibbles: the low ones of eight bytes, or the high ones.
static __device__ __forceinline__ uint4 scaled_nibbles(const u8 *codes, bool high, float bias, float scale,
                                                       float least) {
    int shift = high ? 4 : 0;
    return scaled_bytes(word_at(codes) >> shift & 0x0f0f0f0fu, word_at(codes + 4) >> shift & 0x0f0f0f0fu, bias, scale,
                        least);
}

static __device__ __forceinline__ uint4 unpack_eight(format_bf16, const u8 *row, int i) {
    return *(const uint4 *)(row + 2 * i);
}

static __device__ __forceinline__ u32 bf16_of_halves(u32 pair) {
    return pack_bf16(to_f32(f16{(u16)pair}), to_f32(f16{(u16)(pair >> 16)}));
}

static __device__ __forceinline__ uint4 unpack_eight(format_f16, const u8 *row, int i) {
    uint4 v = *(const uint4 *)(row + 2 * i);
    return make_uint4(bf16_of_halves(v.x), bf16_of_halves(v.y), bf16_of_halves(v.z), bf16_of_halves(v.w));
}

static __device__ __forceinline__ uint4 unpack_eight(format_q8_0, const u8 *row, int i) {
    const u8 *block = row + i / 32 * 34, *codes = block + 2 + i % 32;
    // the sign bit turned over, a code is a byte 128 above itself
    return scaled_bytes(word_at(codes) ^ 0x80808080u, word_at(codes + 4) ^ 0x80808080u, 128.f, half_at(block), 0.f);
}

static __device__ __forceinline__ uint4 unpack_eight(format_q4_0, const u8 *row, int i) {
    const u8 *block = row + i / 32 * 18;
    return scaled_nibbles(block + 2 + i % 16, i % 32 >= 16, 8.f, half_at(block), 0.f);
}

static __device__ __forceinline__ uint4 unpack_eight(format_q4_1, const u8 *row, int i) {
    const u8 *block = row + i / 32 * 20;
    return scaled_nibbles(block + 4 + i % 16, i % 32 >= 16, 0.f, half_at(block), half_at(block + 2));
}

static __device__ __forceinline__ uint4 unpack_eight(format_q4_k, const u8 *row, int i) {
    const u8 *all = row + i / 256 * 144;
    int block = i % 256 / 32, scale, least;
    format_q4_k::levels(all + 4, block, scale, least);
    return scaled_nibbles(all + 16 + block / 2 * 32 + i % 32, block % 2, 0.f, half_at(all) * (float)scale,
                          -half_at(all + 2) * (float)least);
}

static __device__ __forceinline__ uint4 unpack_eight(format_q6_k, const u8 *row, int i) {
    const u8 *all = row + i / 256 * 210;
    int half = i % 256 / 128, quarter = i % 128 / 32, column = i % 32;
    const u8 *low = all + half * 64 + quarter % 2 * 32 + column, *high = all + 128 + half * 32 + column;
    int low_shift = quarter / 2 * 4, high_shift = 2 * quarter;
    u32 first = (word_at(low) >> low_shift & 0x0f0f0f0fu) | (word_at(high) >> high_shift & 0x03030303u) << 4;
    u32 second = (word_at(low + 4) >> low_shift & 0x0f0f0f0fu) | (word_at(high + 4) >> high_shift & 0x03030303u) << 4;
    return scaled_bytes(first, second, 32.f, half_at(all + 208) * (float)(i8)all[192 + i % 256 / 16], 0.f);
}
