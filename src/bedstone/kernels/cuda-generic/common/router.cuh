// A router in one launch: product, scores, choice and weights. A cluster takes ROUTED_ROWS rows; its
// blocks deal out the experts and leave their logits with the first, which chooses. A source says by
// `make_logits` how the logits are made, then which entries there are.
#pragma once
#define WARPS 8
#include "choice.cuh"
#include "cluster.cuh"
#include "dot.cuh"

#define ROUTED_ROWS WARPS
#define BLOCKS 8  // of a cluster

template <class X>
struct Router {
    const X *x;
    const u8 *w;
    const float *bias;
    int *ids;
    float *weights;
    int rows, k;
    Choice choice;
    int fn, normalise;
    float factor;
};

// The warp's number among those of its cluster, and how many there are.
static __device__ __forceinline__ int warp_of_cluster() { return cluster_rank() * WARPS + threadIdx.x / 32; }
static __device__ __forceinline__ int warps_of_cluster() { return cluster_size() * WARPS; }

template <class X>
static __device__ __forceinline__ void choose(const Router<X> &r, i64 row, float *scores, Ballot ballot) {
    int chosen = r.choice.chosen;
    score_row(scores, r.choice.experts, r.fn, scores);
    __syncwarp();
    int *ids = (int *)ballot.worth;  // which the choice is through with before it gives the first
    topk_row(scores, r.bias, r.choice, ballot, ids);
    __syncwarp();
    for (int i = threadIdx.x % 32; i < chosen; i += 32) r.ids[row * chosen + i] = ids[i];
    renorm_row(scores, ids, chosen, r.normalise, r.factor, r.weights + row * chosen);
}

// Brings this block's share of the matrix into the second-level cache.
template <class X>
static __device__ __forceinline__ void prefetch_share(const Router<X> &r) {
    i64 bytes = r.choice.experts * format::bytes(r.k), step = (i64)warps_of_cluster() * 32 * 128;
    for (i64 at = 128 * (warp_of_cluster() * 32 + (i64)threadIdx.x % 32); at < bytes; at += step)
        prefetch_line(r.w + at);
}

template <class X>
static __device__ __forceinline__ void route(const Router<X> &r) {
    extern __shared__ float scores[];
#if __CUDA_ARCH__ < 900
    if (blockIdx.x % BLOCKS) return;
#endif
    int first = blockIdx.x / BLOCKS * ROUTED_ROWS, count = min(ROUTED_ROWS, r.rows - first), warp = threadIdx.x / 32;
    int experts = r.choice.experts;
    prefetch_share(r);
    cluster_sync();  // nobody writes to a block that has not begun
    before_next();
    after_previous();
    make_logits(r, first, count, of_block(scores, 0));
    cluster_sync();
    if (cluster_rank() || warp >= count) return;
    u8 *ballots = (u8 *)(scores + ROUTED_ROWS * experts);
    choose(r, first + warp, scores + warp * experts, ballot_at(ballots + warp * BALLOT_BYTES * experts, experts));
}

#define ROUTE(family, ending, X, x, bias_in, bias)                                                        \
    BS_KERNEL(32 * WARPS)                                                                                 \
    BS_ENTRY(family, ending)(const X *x, const u8 *w bias_in, int *ids, float *weights, int rows, int k,  \
                             int experts, int chosen, int groups, int group_k, int group_best, int fn,    \
                             int normalise, float factor) {                                               \
        route(Router<X>{x, w, bias, ids, weights, rows, k, {experts, chosen, groups, group_k, group_best}, \
                        fn, normalise, factor});                                                          \
    }

#define BIAS , const float *b
