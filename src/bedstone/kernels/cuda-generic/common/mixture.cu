// score, topk, renorm, xsum: what a router makes of its logits, and the weighted sum of the chosen
// experts' outputs. A row is a warp's; of a sum, a value is a thread's.
#include "choice.cuh"

#define ROWS 4  // of a block

static __device__ __forceinline__ int warp_row() { return blockIdx.x * ROWS + threadIdx.x / 32; }

BS_KERNEL(32 * ROWS)
score(const float *x, float *y, int rows, int experts, int fn) {
    i64 row = warp_row();
    before_next();
    after_previous();
    if (row < rows) score_row(x + row * experts, experts, fn, y + row * experts);
}

static __device__ void topk_entry(const float *x, const float *bias, int *ids, int rows, Choice choice) {
    extern __shared__ u8 memory[];
    i64 row = warp_row();
    before_next();
    after_previous();
    if (row >= rows) return;
    u8 *own = memory + threadIdx.x / 32 * BALLOT_BYTES * choice.experts;
    topk_row(x + row * choice.experts, bias, choice, ballot_at(own, choice.experts), ids + row * choice.chosen);
}

BS_KERNEL(32 * ROWS)
topk(const float *x, int *ids, int rows, int experts, int chosen, int groups, int group_k, int group_best) {
    topk_entry(x, nullptr, ids, rows, Choice{experts, chosen, groups, group_k, group_best});
}

BS_KERNEL(32 * ROWS)
topk_b(const float *x, const float *bias, int *ids, int rows, int experts, int chosen, int groups,
       int group_k, int group_best) {
    topk_entry(x, bias, ids, rows, Choice{experts, chosen, groups, group_k, group_best});
}

BS_KERNEL(32 * ROWS)
renorm(const float *x, const int *ids, float *y, int rows, int experts, int chosen, int normalise,
       float factor) {
    i64 row = warp_row();
    before_next();
    after_previous();
    if (row < rows)
        renorm_row(x + row * experts, ids + row * chosen, chosen, normalise, factor, y + row * chosen);
}

BS_KERNEL(256)
xsum(const float *x, const float *w, float *y, int rows, int chosen, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    i64 row = blockIdx.y;
    before_next();
    after_previous();
    if (i >= n) return;
    float total = 0.0f;
    for (int j = 0; j < chosen; j++)
        total = __fmaf_rn(x[(row * chosen + j) * n + i], w[row * chosen + j], total);
    y[row * n + i] = total;
}
