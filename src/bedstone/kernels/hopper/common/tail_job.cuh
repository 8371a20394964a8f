// What a layer does behind its attention, for one row: its products, what lies between them, and where results go.
#pragma once
#include "abi.cuh"

#define LOT 32 // outputs that share a scale where they are multiplied next: one block has made them

enum { PROJECTED, GATED, BACK, NEXT, PRODUCTS };

// One product of a row: outputs of up to three matrices side by side; or, gated, act(x w[0]) * (x w[1]).
struct product {
    const u8 *w[3];
    float *y[2]; // of matrices whose outputs are results; the third goes to the table
    int n[3], k, gated; // 1: of two streams
    uint4 *told;        // where outputs are told of that all blocks multiply next

    // The matrix that has an output, and which of its own it is.
    __device__ __forceinline__ int part_of(int &output) const {
        int part = 0;
        while (output >= n[part]) output -= n[part++];
        return part;
    }
};

struct norm_of {
    const float *w;
    float eps;
    int plus_one;

    __device__ __forceinline__ float factor(float squares, int width) const { return 1.0f / sqrtf(squares / (float)width + eps); }
    __device__ __forceinline__ float weighted(float x, float weight) const {
        return __fmul_rn(x, plus_one ? __fadd_rn(1.0f, weight) : weight);
    }
};

struct tail {
    const float *attended, *x;
    norm_of behind, before;
    float *sum; // where x and all that is added comes to lie, if anybody wants it
    cache_t *table;
    const int *slot;
    int width, act;
};

static __device__ __forceinline__ void put(const tail &t, const product &j, int output, float value) {
    int part = j.part_of(output);
    if (part < 2) {
        j.y[part][output] = value;
    } else if (int slot = *t.slot; slot >= 0) {
        t.table[(i64)slot * j.n[part] + output] = from_f32<cache_t>(value);
    }
}
