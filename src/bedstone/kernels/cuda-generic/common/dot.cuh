// What a warp makes of rows of weights and a row of float activations.
//
// A sum's order depends on the format and k alone: unit u of a row is lane u % 32's, in its slice
// u / 32 % SLICES; a lane's slices are summed in order, folded, and then the lanes are. So every
// entry that multiplies by a matrix makes the same bits of it. Rows that are not whole units are
// taken value by value, as units of one.
#pragma once
#include "weights.cuh"

#define SLICES 4  // sums a lane keeps, which hang on no other

static __device__ __forceinline__ bool lies_on_16(const void *p) { return ((u64)p & 15) == 0; }

// The activations of a unit, and their sum.
template <class F, bool ALIGNED>
static __device__ __forceinline__ float load_unit(const float *x, int u, float (&out)[F::UNIT]) {
    float all = 0.0f;
#pragma unroll
    for (int p = 0; p < F::UNIT / 4; p++) {
        const float *from = x + F::at(u, p);
        if constexpr (ALIGNED) {
            float4 four = *(const float4 *)from;
            out[4 * p] = four.x, out[4 * p + 1] = four.y, out[4 * p + 2] = four.z, out[4 * p + 3] = four.w;
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) out[4 * p + i] = from[i];
        }
        all += (out[4 * p] + out[4 * p + 1]) + (out[4 * p + 2] + out[4 * p + 3]);
    }
    return all;
}

// Unit `u` of each of W rows.
template <class F, int W, bool ALIGNED>
struct Units {
    static __device__ __forceinline__ int count(int k) { return k / F::UNIT; }
    static __device__ __forceinline__ void add(const u8 *const (&w)[W], const float *x, int u, int slice,
                                               float (&sums)[W][SLICES]) {
        float values[F::UNIT], all = load_unit<F, ALIGNED>(x, u, values);
#pragma unroll
        for (int i = 0; i < W; i++) sums[i][slice] += F::dot(w[i], u, values, all);
    }
};

template <class F, int W>
struct Values {
    static __device__ __forceinline__ int count(int k) { return k; }
    static __device__ __forceinline__ void add(const u8 *const (&w)[W], const float *x, int u, int slice,
                                               float (&sums)[W][SLICES]) {
#pragma unroll
        for (int i = 0; i < W; i++) sums[i][slice] = fmaf(F::value(w[i], u), x[u], sums[i][slice]);
    }
};

template <class Taken, int W>
static __device__ __forceinline__ void add_rows(const u8 *const (&w)[W], const float *x, int k,
                                                float (&sums)[W][SLICES]) {
    int units = Taken::count(k), u = threadIdx.x % 32;
    for (; u + 32 * (SLICES - 1) < units; u += 32 * SLICES)
#pragma unroll
        for (int s = 0; s < SLICES; s++) Taken::add(w, x, u + 32 * s, s, sums);
#pragma unroll
    for (int s = 0; s < SLICES - 1; s++)
        if (u + 32 * s < units) Taken::add(w, x, u + 32 * s, s, sums);
}

// The products of W rows of weights with one row of activations, to every lane.
template <class F, int W>
static __device__ __forceinline__ void dot_rows(const u8 *const (&w)[W], const float *x, int k,
                                                float (&made)[W]) {
    float sums[W][SLICES] = {};
    if (k % F::UNIT) add_rows<Values<F, W>>(w, x, k, sums);
    else if (lies_on_16(x)) add_rows<Units<F, W, true>>(w, x, k, sums);
    else add_rows<Units<F, W, false>>(w, x, k, sums);
#pragma unroll
    for (int i = 0; i < W; i++) made[i] = warp_sum((sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3]));
}
