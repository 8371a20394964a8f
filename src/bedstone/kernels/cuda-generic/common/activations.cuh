// What products of float activations keep of them: a thread's units.
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

// A unit's activations.
struct unit_of_x {
    float x[format::UNIT], all;

    __device__ __forceinline__ void take(const float (&from)[format::UNIT]) {
        all = 0;
#pragma unroll
        for (int i = 0; i < format::UNIT; i += 4) {
            x[i] = from[i], x[i + 1] = from[i + 1], x[i + 2] = from[i + 2], x[i + 3] = from[i + 3];
            all += (x[i] + x[i + 1]) + (x[i + 2] + x[i + 3]);
        }
    }
    __device__ __forceinline__ float dot(const u8 *row, int u) const { return format::dot(row, u, x, all); }
};

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
