// A router's choice, made by one warp for one row: scores of its logits, the best experts, and the
// weights they are given.
#pragma once
#include "act.cuh"

#define SIGMOID_SCORE 1  // else softmax

// Only experts of the `group_k` best groups are chosen; a group's worth is that of its `group_best`
// best experts together.
struct Choice {
    int experts, chosen, groups, group_k, group_best;
};

// What a choice needs of shared memory, each as long as there are experts.
struct Ballot {
    u32 *keys, *worth;
    float *best;
};

#define BALLOT_BYTES 12  // an expert

static __device__ __forceinline__ Ballot ballot_at(void *memory, int experts) {
    u32 *keys = (u32 *)memory;
    return Ballot{keys, keys + experts, (float *)(keys + 2 * experts)};
}

// `y` may be `x`.
static __device__ void score_row(const float *x, int experts, int fn, float *y) {
    int lane = threadIdx.x % 32;
    float top = __int_as_float(0xff800000), sum = 0.0f;
    for (int i = lane; i < experts; i += 32) top = fmaxf(top, x[i]);
    top = warp_max(top);
    for (int i = lane; i < experts; i += 32) {
        float v = fn == SIGMOID_SCORE ? sigmoid(x[i]) : expf(__fsub_rn(x[i], top));
        y[i] = v;
        sum = __fadd_rn(sum, v);
    }
    float total = fn == SIGMOID_SCORE ? 1.0f : warp_sum(sum);
    for (int i = lane; i < experts; i += 32) y[i] = __fdiv_rn(y[i], total);
}

// Words that order as floats do, zeros alike; never 0, which stands for what was taken. What is not
// a number comes first: it is chosen and seen in the weights.
static __device__ __forceinline__ u32 key_of(float x) {
    if (x != x) return 0xffffffffu;
    u32 bits = __float_as_uint(__fadd_rn(x, 0.0f));
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float judged(const float *x, const float *bias, int i) {
    return bias ? __fadd_rn(x[i], bias[i]) : x[i];
}

// How many of `count` keys go before key `i`: of equals the first.
static __device__ __forceinline__ int rank_of(const u32 *keys, int count, int i) {
    int rank = 0;
    u32 own = keys[i];
#pragma unroll 8
    for (int j = 0; j < count; j++) rank += keys[j] > own || (keys[j] == own && j < i);
    return rank;
}

// Experts outside the best groups are worth less than any other.
static __device__ void keep_groups(const float *x, const float *bias, const Choice &choice, Ballot ballot) {
    int lane = threadIdx.x % 32, size = choice.experts / choice.groups;
    for (int i = lane; i < choice.experts; i += 32) {
        int group = i / size, rank = rank_of(ballot.keys + group * size, size, i - group * size);
        if (rank < choice.group_best) ballot.best[group * choice.group_best + rank] = judged(x, bias, i);
    }
    __syncwarp();
    for (int g = lane; g < choice.groups; g += 32) {
        float worth = 0.0f;
        for (int i = 0; i < choice.group_best; i++)
            worth = __fadd_rn(worth, ballot.best[g * choice.group_best + i]);
        ballot.worth[g] = key_of(worth);
    }
    __syncwarp();
    for (int i = lane; i < choice.experts; i += 32)
        if (rank_of(ballot.worth, choice.groups, i / size) >= choice.group_k)
            ballot.keys[i] = key_of(__int_as_float(0xff800000));
    __syncwarp();
}

struct Best {
    u32 key;
    int at;
};

// The best of the keys this lane looks after, the first of equals.
static __device__ __forceinline__ Best best_of(const u32 *keys, int count) {
    Best best = {0, count};
    for (int i = threadIdx.x % 32; i < count; i += 32)
        if (keys[i] > best.key) best = Best{keys[i], i};
    return best;
}

// The chosen of one row's scores, best first; the bias counts for the choice alone.
static __device__ void topk_row(const float *x, const float *bias, const Choice &choice, Ballot ballot,
                                int *ids) {
    int lane = threadIdx.x % 32;
    for (int i = lane; i < choice.experts; i += 32) ballot.keys[i] = key_of(judged(x, bias, i));
    __syncwarp();
    if (choice.groups > 1) keep_groups(x, bias, choice, ballot);
    Best own = best_of(ballot.keys, choice.experts);
    for (int i = 0; i < choice.chosen; i++) {
        u32 key = __reduce_max_sync(BS_FULL, own.key);
        int at = (int)__reduce_min_sync(BS_FULL, own.key == key ? (u32)own.at : 0x7fffffffu);
        if (lane == 0) ids[i] = at;
        if (own.at == at) {
            ballot.keys[at] = 0;
            own = best_of(ballot.keys, choice.experts);
        }
        __syncwarp();
    }
}

// What the chosen of one row are weighted by.
static __device__ void renorm_row(const float *x, const int *ids, int chosen, int normalise, float factor,
                                  float *y) {
    float sum = 0.0f;
#pragma unroll 8
    for (int i = 0; i < chosen; i++) sum = __fadd_rn(sum, x[ids[i]]);
    for (int i = threadIdx.x % 32; i < chosen; i += 32) {
        float own = x[ids[i]];
        y[i] = __fmul_rn(normalise ? __fdiv_rn(own, sum) : own, factor);
    }
}
