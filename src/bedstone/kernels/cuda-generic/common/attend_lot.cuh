// Rows, heads and tiles of a block where it attends rows one by one, and what it has in shared memory beside
// its rings. The blocks of a cluster share a row.
#pragma once
#include "attend_one.cuh"
#include "cluster.cuh"

#define MOST_BLOCKS 16  // of a cluster
#define THREADS (32 * WARPS)
#define PITCH (D + 8)  // floats from a rotated query to the next, in different banks

static __device__ __forceinline__ int log_of(int power) { return 31 - __clz(power); }

// A lot: up to HEADS heads of one group, and which of the row's tiles this block has.
struct Lot {
    int row, group, first, count;
    int blocks, rank;  // of the cluster: a power of two

    __device__ __forceinline__ int step() const { return blocks * WARPS; }
    // The first tile, not before `from`, of this warp.
    __device__ __forceinline__ int tile(int from) const {
        int unit = threadIdx.x / 32 * blocks + rank;
        return from + ((unit - from) & (step() - 1));
    }
    // Whether it is a tile of this block.
    __device__ __forceinline__ bool has(int tile) const { return (tile & (blocks - 1)) == rank; }
};

static __device__ __forceinline__ Lot lot_of(const Attention<bf16> &a, int which) {
    int of_group = a.heads / a.groups, lots = (of_group + HEADS - 1) / HEADS;
    int group = lots == 1 ? which : which / lots, from = (which - group * lots) * HEADS;
    return Lot{(int)blockIdx.x, group, group * of_group + from, min(HEADS, of_group - from), cluster_size(),
               cluster_rank()};
}

static __device__ __forceinline__ int lots_of(const Attention<bf16> &a) {
    return a.groups * ((a.heads / a.groups + HEADS - 1) / HEADS);
}

// The tops and sums of the heads, of a warp or of a block.
typedef float2 Tops[HEADS];

// What blocks of a cluster send each other. Values are dealt to them by runs of 32.
template <int D>
struct Inbox {
    Tops tops[MOST_BLOCKS];
    alignas(16) float values[(HEADS + 1) * PITCH];  // of each block those of this one
    u64 came;
    u32 parity;

    static __device__ __forceinline__ int pitch(int blocks) { return HEADS * D >> log_of(blocks); }
};

template <int D>
struct alignas(16) Block {
    Tops warps[WARPS], all;
    Inbox<D> inbox;
};

