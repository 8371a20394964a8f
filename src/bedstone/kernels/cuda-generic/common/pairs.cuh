// Pairs of a row and one of its choices, sorted by expert, for a block that takes some experts' products.
#pragma once
#include "abi.cuh"

#define MOST_EXPERTS 1024

// Which experts are a block's: every `stride`-th from `first` on.
struct Experts {
    int first, stride;

    __device__ __forceinline__ bool has(int id) const { return id % stride == first; }
};

// In shared memory: the pairs, and where each expert's end among them.
struct Pairs {
    u16 *list;
    int *ends;
    const int *ids;  // of pair 0
    int count;
};

// Where each of the experts' pairs begin, of how many there are of each; by one warp.
static __device__ __forceinline__ int sum_before(int *counts, int experts) {
    int lane = threadIdx.x % 32, each = (experts + 31) / 32, sum = 0;
    for (int i = lane * each; i < min(experts, (lane + 1) * each); i++) sum += counts[i];
    int before = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(BS_FULL, before, step);
        if (lane >= step) before += other;
    }
    int total = __shfl_sync(BS_FULL, before, 31);
    before -= sum;
    for (int i = lane * each; i < min(experts, (lane + 1) * each); i++) {
        int own = counts[i];
        counts[i] = before;
        before += own;
    }
    return total;
}

// All threads of a block; those of one expert are in no certain order, and no result depends on it.
static __device__ __forceinline__ Pairs sort_pairs(const int *ids, int count, Experts mine, u16 *list, int *ends) {
    __shared__ int total;
    int experts = (MOST_EXPERTS + mine.stride - 1) / mine.stride;
    for (int i = threadIdx.x; i < experts; i += blockDim.x) ends[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        if (mine.has(ids[i])) atomicAdd(ends + ids[i] / mine.stride, 1);
    __syncthreads();
    if (threadIdx.x < 32) {
        int all = sum_before(ends, experts);
        if (threadIdx.x == 0) total = all;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        if (mine.has(ids[i])) list[atomicAdd(ends + ids[i] / mine.stride, 1)] = (u16)i;
    __syncthreads();
    return Pairs{list, ends, ids, total};
}

// `take(expert, list, count)` for the pairs of each expert, an expert in `of` after another of it: those
// that are `which` in turn.
template <class Take>
static __device__ __forceinline__ void each_expert(const Pairs &pairs, Experts mine, int which, int of, Take take) {
    for (int from = 0, turn = 0, end; from < pairs.count; from = end, turn++) {
        int id = pairs.ids[pairs.list[from]];
        end = pairs.ends[id / mine.stride];
        if (turn % of == which) take(id, pairs.list + from, end - from);
    }
}
