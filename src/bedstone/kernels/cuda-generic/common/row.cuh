// A row of logits that the blocks of a cluster share: each has a slice of it, each of its warps a chunk of
// that, in the order of the row; and what they find out together.
#pragma once
#include "cluster.cuh"

#define THREADS 512
#define WARPS (THREADS / 32)
#define MOST_BLOCKS 8  // of a cluster

// What cannot be drawn: the least float there is.
#define LEFT_OUT (-3.402823466e+38f)

struct Row {
    const float *x;
    int begin, end;  // of this block
    int from, to;    // of this warp
};

static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }

static __device__ __forceinline__ Row row_of(const float *x, int count) {
    int share = (count + cluster_size() - 1) / cluster_size(), begin = min(cluster_rank() * share, count);
    int end = min(begin + share, count), chunk = (share + WARPS - 1) / WARPS;
    int from = min(begin + warp() * chunk, end);
    return Row{x, begin, end, from, min(from + chunk, end)};
}

// f(value, index, there) for the values of a warp's chunk, 32 at a time; lanes behind its end are not there.
template <class F>
static __device__ __forceinline__ void each(Row row, F f) {
#pragma unroll 2
    for (int i = row.from; i < row.to; i += 32) {
        int at = i + lane();
        bool there = at < row.to;
        f(there ? row.x[at] : LEFT_OUT, at, there);
    }
}

struct Best {
    float value;
    int index;
    int finite;
};

static __device__ __forceinline__ Best nothing() { return Best{__int_as_float(0xff800000), 0x7fffffff, 1}; }

static __device__ __forceinline__ Best better(Best a, Best b) {
    bool second = b.value > a.value || (b.value == a.value && b.index < a.index);
    return Best{second ? b.value : a.value, second ? b.index : a.index, a.finite & b.finite};
}

static __device__ __forceinline__ Best shuffled(Best x, int step) {
    return Best{__shfl_xor_sync(BS_FULL, x.value, step), __shfl_xor_sync(BS_FULL, x.index, step),
                __shfl_xor_sync(BS_FULL, x.finite, step)};
}
static __device__ __forceinline__ u64 shuffled(u64 x, int step) { return __shfl_xor_sync(BS_FULL, x, step); }
static __device__ __forceinline__ double shuffled(double x, int step) { return __shfl_xor_sync(BS_FULL, x, step); }

// Put together in one order, whoever is first.
static __device__ __forceinline__ Best joined(Best a, Best b) { return better(a, b); }
static __device__ __forceinline__ u64 joined(u64 a, u64 b) { return a + b; }
static __device__ __forceinline__ double joined(double a, double b) { return a + b; }

template <class T>
static __device__ __forceinline__ T of_warp(T x) {
#pragma unroll
    for (int step = 16; step; step >>= 1) x = joined(x, shuffled(x, step));
    return x;
}

// What each warp of a block has, in every thread of it, in the order of warps.
template <class T>
static __device__ __forceinline__ T of_block(T x) {
    __shared__ T warps[WARPS];
    x = of_warp(x);
    if (lane() == 0) warps[warp()] = x;
    __syncthreads();
    x = warps[0];
    for (int i = 1; i < WARPS; i++) x = joined(x, warps[i]);
    __syncthreads();
    return x;
}

// What each block of a cluster has, in all of them.
template <class T>
struct Blocks {
    T of[MOST_BLOCKS];
};

// `x`, the same in every thread of a block, is told to every block. A cluster may tell again at once: what was
// told before the last time is read by nobody any more.
template <class T>
static __device__ __forceinline__ Blocks<T> told(T x, int &turn) {
    __shared__ T box[2][MOST_BLOCKS];
    turn ^= 1;
    int blocks = cluster_size();
    if (threadIdx.x < blocks) *of_block(&box[turn][cluster_rank()], threadIdx.x) = x;
    cluster_sync();
    Blocks<T> all;
#pragma unroll
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (i < blocks) all.of[i] = box[turn][i];
    return all;
}

template <class T>
static __device__ __forceinline__ T of_row(T x, int &turn) {
    Blocks<T> all = told(of_block(x), turn);
    x = all.of[0];
#pragma unroll
    for (int i = 1; i < MOST_BLOCKS; i++)
        if (i < cluster_size()) x = joined(x, all.of[i]);
    return x;
}

// The largest of a row, the first of equals, and whether all are finite.
static __device__ __noinline__ Best search(Row row, int &turn) {
    Best best = nothing();
    float poison = 0.0f;
    each(row, [&](float x, int at, bool there) {
        poison = fmaf(there ? x : 0.0f, 0.0f, poison);
        // a thread meets its values in order: of equals it keeps the first
        if (there && x > best.value) best = Best{x, at, 1};
    });
    best.finite = poison == 0.0f;
    return of_row(best, turn);
}
