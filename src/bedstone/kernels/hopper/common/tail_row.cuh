// A row of activations in a block's shared memory: as floats, normed, in eight bits.
#pragma once
#include "copies.cuh"
#include "tail_tiles.cuh"

#define NORM_THREADS 256 // that sum squares, as `norm` does

// What of the row a block has at hand.
struct row_room {
    u8 *codes;      // of what is multiplied
    float *row;     // x and what was added to it so far
    float *weights; // of the norm that comes next
};

// A row to shared memory behind the threads' backs, until `fetched`.
static __device__ __forceinline__ void bring(float *to, const float *from, int width) {
#pragma unroll 2
    for (int i = 4 * threadIdx.x; i < width; i += 4 * THREADS) copy_16(shared_address(to + i), from + i);
}

static __device__ __forceinline__ float4 add_four(float4 a, float4 b) {
    return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w));
}

// Adds what all blocks have made to the row; of the sum its square sum, in the order of `norm`.
static __device__ __forceinline__ float add_row(float *row, const float *made, int width) {
    __shared__ float squares[NORM_THREADS / 32];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < NORM_THREADS) {
        float sum = 0;
#pragma unroll 4
        for (int i = 4 * threadIdx.x; i < width; i += 4 * NORM_THREADS) {
            float4 v = add_four(*(const float4 *)(row + i), __ldcg((const float4 *)(made + i)));
            *(float4 *)(row + i) = v;
            sum = fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, sum))));
        }
        sum = warp_sum(sum);
        if (lane == 0) squares[threadIdx.x / 32] = sum;
    }
    sync_block();
    return warp_sum(lane < NORM_THREADS / 32 ? squares[lane] : 0.0f);
}

// How values become what is multiplied: times a factor, and each times its weight; where there are none, as they are.
struct scaling {
    const float *w;
    float by;
    int plus_one; // the weight is 1 + w

    __device__ __forceinline__ void apply(float (&v)[8], int at, int k) const {
        if (!w) return;
        float weight[8];
        load_eight(weight, w, at, k);
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = __fmul_rn(__fmul_rn(v[i], by), plus_one ? __fadd_rn(1.0f, weight[i]) : weight[i]);
    }
};

// A row in eight bits, from wherever it lies.
static __device__ __forceinline__ void code_row(const coded_rows &to, const float *x, const scaling &how) {
    constexpr int STEP = 8 * THREADS;
    int end = to.spans * SPAN;
#pragma unroll 1
    for (int i = 8 * threadIdx.x; i < end; i += 3 * STEP) {
        float v[3][8];
#pragma unroll
        for (int n = 0; n < 3; ++n) load_eight(v[n], x, i + n * STEP, to.k);
#pragma unroll
        for (int n = 0; n < 3; ++n) {
            int at = i + n * STEP;
            if (at >= end) break;
            how.apply(v[n], at, to.k);
            to.put(v[n], 0, at);
        }
    }
    sync_block();
}

// This block's share of the row, for whoever adds to it next.
static __device__ __forceinline__ void give_share(const float *row, float *to, int width) {
    int first = (int)((i64)width * blockIdx.x / gridDim.x), end = (int)((i64)width * (blockIdx.x + 1) / gridDim.x);
    for (int i = first + threadIdx.x; i < end; i += THREADS) to[i] = row[i];
}
