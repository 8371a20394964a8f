// Rows of activations in eight bits, as quantized matrices read them where the numerics is the one that also
// caches bfloat16: 32 consecutive values share a scale.
#pragma once
#include "weights.cuh"

#define SPAN 256 // values that are multiplied at a time

#if __CUDA_ARCH__ >= 900
static constexpr bool EIGHT_BITS = format::BLOCK > 1 && sizeof(cache_t) == 2;
#else
static constexpr bool EIGHT_BITS = false;
#endif

// A scale of so many values, the largest of which has these bits: NaN where one is not finite.
static __device__ __forceinline__ float scale_of(u32 largest) {
    return largest >= 0x7f800000u ? __uint_as_float(0x7fffffffu) : __uint_as_float(largest) / 127.f;
}

// Four values in eight bits. Added to 3 * 2^22 a value is rounded to a whole number, whose low eight bits are
// the sum's.
static __device__ __forceinline__ u32 code_four(const float *x, float inverse) {
    u32 bits[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) bits[i] = __float_as_uint(fmaf(x[i], inverse, 12582912.f));
    u32 low = __byte_perm(bits[0], bits[1], 0x0040), high = __byte_perm(bits[2], bits[3], 0x0040);
    return __byte_perm(low, high, 0x5410);
}

// What values of that scale are multiplied by: 0 where it is 0 or no number.
static __device__ __forceinline__ float inverse_of(float scale) { return scale >= 1.17549435e-38f ? __frcp_rn(scale) : 0.f; }

// Eight values of a row that may begin anywhere; past its end zeros.
static __device__ __forceinline__ void load_eight(float (&to)[8], const float *x, int at, int k) {
#pragma unroll
    for (int i = 0; i < 8; ++i) to[i] = 0;
    if (at >= k) return;
    if (((u64)x & 15) == 0) {
        float4 low = *(const float4 *)(x + at), high = *(const float4 *)(x + at + 4);
        to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
        to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) to[i] = x[at + i];
    }
}

// A span of some rows in shared memory.
struct coded_span {
    const u8 *codes, *pairs;
    u32 pitch;  // from one row to the next
    int blocks; // of 32 values, that a row has from here on

    // Four values a word.
    __device__ __forceinline__ const u32 *words(int row) const { return (const u32 *)(codes + row * pitch); }
    // Of each 32 values the scale, and their sum.
    __device__ __forceinline__ const float2 *scales(int row) const { return (const float2 *)(pairs + row * pitch); }
};

// Of some rows of k values the spans from `first` on in shared memory: of each row codes, then scales; zeros past
// its end.
struct coded_rows {
    static constexpr int EACH = SPAN + SPAN / 32 * 8; // bytes a span
    u8 *memory;
    int spans, k, first;

    __device__ __forceinline__ int bytes() const { return spans * EACH; }

    // Row `row`, by so many threads: eight values each, three times at once.
    template <int THREADS>
    __device__ __forceinline__ void code(const float *x, int row) const {
        constexpr int STEP = 8 * THREADS;
        int end = spans * SPAN;
#pragma unroll 1
        for (int i = 8 * threadIdx.x; i < end; i += 3 * STEP) {
            float v[3][8];
#pragma unroll
            for (int n = 0; n < 3; ++n) load_eight(v[n], x, first * SPAN + i + n * STEP, k);
#pragma unroll
            for (int n = 0; n < 3; ++n)
                if (i + n * STEP < end) put(v[n], row, i + n * STEP);
        }
    }
    // Whole warps put whole spans: four lanes have what shares a scale.
    __device__ __forceinline__ void put(const float (&v)[8], int row, int i) const {
        u8 *codes = memory + row * bytes();
        u32 largest = 0;
#pragma unroll
        for (int n = 0; n < 8; ++n) largest = max(largest, __float_as_uint(fabsf(v[n])));
        largest = max(largest, __shfl_xor_sync(BS_FULL, largest, 1));
        float scale = scale_of(max(largest, __shfl_xor_sync(BS_FULL, largest, 2))), inverse = inverse_of(scale);
        u32 low = code_four(v, inverse), high = code_four(v + 4, inverse);
        int sum = __dp4a((int)high, 0x01010101, __dp4a((int)low, 0x01010101, 0));
        sum += __shfl_xor_sync(BS_FULL, sum, 1);
        sum += __shfl_xor_sync(BS_FULL, sum, 2);
        *(uint2 *)(codes + i) = make_uint2(low, high);
        if (i % 32 == 0) ((float2 *)(codes + spans * SPAN))[i / 32] = make_float2(scale, scale * (float)sum);
    }
    __device__ __forceinline__ coded_span at(int span) const {
        return {memory + span * SPAN, memory + spans * SPAN + span * (SPAN / 4), (u32)bytes(),
                k / 32 - (first + span) * (SPAN / 32)};
    }
};
