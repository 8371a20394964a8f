// What products of float activations keep of them: a thread's units, as floats or in eight bits.
#pragma once
#include "weights.cuh"

// A unit's activations where rows begin on 16 bytes and are whole units: loads that wait for nothing.
static __device__ __forceinline__ void load_values(float (&to)[format::UNIT], const float *x, int u) {
#pragma unroll
    for (int p = 0; p < format::UNIT / 4; ++p) {
        float4 v = *(const float4 *)(x + format::at(u, p));
        to[4 * p] = v.x, to[4 * p + 1] = v.y, to[4 * p + 2] = v.z, to[4 * p + 3] = v.w;
    }
}

// The same wherever they lie; past the end of a row of k zeros.
static __device__ __forceinline__ void load_each(float (&to)[format::UNIT], const float *x, int u, int k) {
    for (int i = 0; i < format::UNIT; ++i) {
        int at = format::at(u, i / 4) + i % 4;
        to[i] = at < k ? x[at] : 0.f;
    }
}

// A unit's activations as floats.
template <class F, bool EIGHT>
struct activations {
    float x[F::UNIT], all;

    __device__ __forceinline__ void take(const float (&from)[F::UNIT]) {
        all = 0;
#pragma unroll
        for (int i = 0; i < F::UNIT; i += 4) {
            x[i] = from[i], x[i + 1] = from[i + 1], x[i + 2] = from[i + 2], x[i + 3] = from[i + 3];
            all += (x[i] + x[i + 1]) + (x[i + 2] + x[i + 3]);
        }
    }
    __device__ __forceinline__ float dot(const u8 *row, int u) const { return F::dot(row, u, x, all); }
};

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

template <int N>
static __device__ __forceinline__ u32 largest_of(const float *x) {
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) largest = max(largest, __float_as_uint(fabsf(x[i])));
    return largest;
}

// A row in eight bits in shared memory: four values a word, a scale for each 32.
struct coded_row {
    u32 *word;
    float *scale;

    // All threads of the block, sixteen values each at a time.
    __device__ __forceinline__ void code(const float *x, int k) const {
#pragma unroll 1
        for (int first = 0; first < k; first += 16 * (int)blockDim.x) {
            int i = first + 16 * (int)threadIdx.x, from = min(i, k - 16);
            float v[16];
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                float4 four = *(const float4 *)(x + from + 4 * p);
                v[4 * p] = four.x, v[4 * p + 1] = four.y, v[4 * p + 2] = four.z, v[4 * p + 3] = four.w;
            }
            u32 largest = largest_of<16>(v);
            float by = scale_of(max(largest, __shfl_xor_sync(BS_FULL, largest, 1))), inverse = inverse_of(by);
            if (i >= k) continue;
            *(uint4 *)(word + i / 4) = make_uint4(code_four(v, inverse), code_four(v + 4, inverse), code_four(v + 8, inverse),
                                                  code_four(v + 12, inverse));
            if (i % 32 == 0) scale[i / 32] = by;
        }
    }
};

// The same in eight bits. Every lane of a warp takes its own at once: neighbours share scales.
template <class F>
struct activations<F, true> {
    static constexpr int PIECES = F::UNIT / 4, EACH = PIECES / F::SCALES;
    eight_bits<PIECES, F::SCALES> codes;

    __device__ __forceinline__ void take(const float (&x)[F::UNIT]) {
#pragma unroll
        for (int s = 0; s < F::SCALES; ++s) {
            u32 largest = largest_of<4 * EACH>(x + 4 * EACH * s);
#pragma unroll
            for (int step = 1; step < F::SHARE; step *= 2) largest = max(largest, __shfl_xor_sync(BS_FULL, largest, step));
            codes.scale[s] = scale_of(largest);
            float inverse = inverse_of(codes.scale[s]);
#pragma unroll
            for (int p = EACH * s; p < EACH * (s + 1); ++p) codes.word[p] = (int)code_four(x + 4 * p, inverse);
        }
        add_up();
    }
    __device__ __forceinline__ void copy(const coded_row &row, int u) {
#pragma unroll
        for (int p = 0; p < PIECES; ++p) codes.word[p] = (int)row.word[F::at(u, p) / 4];
#pragma unroll
        for (int s = 0; s < F::SCALES; ++s) codes.scale[s] = row.scale[F::at(u, EACH * s) / 32];
        add_up();
    }
    __device__ __forceinline__ void add_up() {
#pragma unroll
        for (int s = 0; s < F::SCALES; ++s) {
            codes.sum[s] = 0;
#pragma unroll
            for (int p = EACH * s; p < EACH * (s + 1); ++p) codes.sum[s] = __dp4a(codes.word[p], 0x01010101, codes.sum[s]);
        }
    }
    __device__ __forceinline__ float dot(const u8 *row, int u) const { return F::dot_codes(row, u, codes); }
};

// Quantized matrices read eight bits where the numerics is the one that also caches bfloat16.
static constexpr bool EIGHT_BITS = format::BLOCK > 1 && sizeof(cache_t) == 2;
typedef activations<format, EIGHT_BITS> unit_of_x;

// A unit's product, value by value: rows that are no whole units, or do not begin on 16 bytes.
static __device__ __forceinline__ float edge_dot(const u8 *row, int u, const float *x, int k) {
    float sum = 0;
    for (int p = 0; p < format::UNIT / 4; ++p)
        for (int j = 0; j < 4; ++j) {
            int i = format::at(u, p) + j;
            if (i < k) sum = fmaf(format::value(row, i), x[4 * p + j], sum);
        }
    return sum;
}
