// route of float activations: a router's product, scores, choice and weights in one launch. A cluster
// takes ROWS rows; its blocks deal out the experts and leave their logits with the first, which chooses.
#include "choice.cuh"
#include "cluster.cuh"
#include "dot.cuh"

#define WARPS 8
#define ROWS WARPS
#define BLOCKS 8  // of a cluster
#define AT_ONCE 2 // experts a warp multiplies by

struct Router {
    const float *x;
    const u8 *w;
    const float *bias;
    int *ids;
    float *weights;
    int rows, k;
    Choice choice;
    int fn, normalise;
    float factor;
};

static __device__ __forceinline__ Rows<AT_ONCE> experts_from(const Router &r, int expert) {
    Rows<AT_ONCE> rows;
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
        rows.at[i] = r.w + (i64)min(expert + i, r.choice.experts - 1) * format::bytes(r.k);
    return rows;
}

// The logits of rows [first, first + count) into `scores` [ROWS, experts] of the cluster's first block.
static __device__ __forceinline__ void make_logits(const Router &r, int first, int count, float *scores) {
    int experts = r.choice.experts, step = cluster_size() * WARPS * AT_ONCE;
    for (int e = (cluster_rank() * WARPS + threadIdx.x / 32) * AT_ONCE; e < experts; e += step)
        for (int row = 0; row < count; row++) {
            Products<AT_ONCE> made =
                dot_rows<format, AT_ONCE>(experts_from(r, e), r.x + (i64)(first + row) * r.k, r.k);
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                if (threadIdx.x % 32 == i && e + i < experts) scores[row * experts + e + i] = made.at[i];
        }
}

static __device__ __forceinline__ void choose(const Router &r, i64 row, float *scores, void *ballot) {
    int *ids = r.ids + row * r.choice.chosen;
    score_row(scores, r.choice.experts, r.fn, scores);
    __syncwarp();
    topk_row(scores, r.bias, r.choice, ballot_at(ballot, r.choice.experts), ids);
    __syncwarp();
    renorm_row(scores, ids, r.choice.chosen, r.normalise, r.factor, r.weights + row * r.choice.chosen);
}

static __device__ __forceinline__ void route(const Router &r) {
    extern __shared__ float scores[];
#if __CUDA_ARCH__ < 900
    if (blockIdx.x % BLOCKS) return;
#endif
    int first = blockIdx.x / BLOCKS * ROWS, count = min(ROWS, r.rows - first), warp = threadIdx.x / 32;
    int experts = r.choice.experts, own = (cluster_rank() * WARPS + warp) * AT_ONCE;
    if (own < experts) prefetch_rows<AT_ONCE>(experts_from(r, own), format::bytes(r.k));
    cluster_sync(); // nobody writes to a block that has not begun
    before_next();
    after_previous();
    make_logits(r, first, count, of_block(scores, 0));
    cluster_sync();
    if (cluster_rank() || warp >= count) return;
    u8 *ballots = (u8 *)(scores + ROWS * experts);
    choose(r, first + warp, scores + warp * experts, ballots + warp * BALLOT_BYTES * experts);
}

#define ROUTE(ending, bias_in, bias)                                                                     \
    BS_KERNEL(32 * WARPS)                                                                                \
    BS_ENTRY(route_, ending)(const float *x, const u8 *w bias_in, int *ids, float *weights, int rows,    \
                             int k, int experts, int chosen, int groups, int group_k, int group_best,    \
                             int fn, int normalise, float factor) {                                      \
        route({x, w, bias, ids, weights, rows, k, {experts, chosen, groups, group_k, group_best}, fn,    \
               normalise, factor});                                                                      \
    }

#define BIAS , const float *b
ROUTE(, , nullptr)
ROUTE(_b, BIAS, b)
