// Many rows of one sequence: which a thread has, their softmax over a tile of positions, and their
// outputs. DEPTH is the width of keys and values; a warp has 16 rows, a thread two of them.
#pragma once
#include "attention.cuh"
#include "copies.cuh"
#include "mma.cuh"

#define ROWS 128  // of a block
#ifndef TILE
#define TILE (DEPTH > 128 ? 32 : 64)  // positions, fewer where a row's values fill the registers
#endif
#define LOG2_E 1.44269504f

// The two rows of a warp that a thread has values of: g and g + 8.
struct RowPair {
    int row[2];
    Span span[2];

    __device__ __forceinline__ bool see_all(int from) const {
        int first = max(span[0].first, span[1].first), last = min(span[0].last, span[1].last);
        return __all_sync(BS_FULL, first <= from && last >= from + TILE - 1);
    }
    __device__ __forceinline__ bool see_any(int from) const {
        int first = min(span[0].first, span[1].first), last = max(span[0].last, span[1].last);
        return __any_sync(BS_FULL, first < from + TILE && last >= from);
    }
};

static __device__ __forceinline__ RowPair rows_of_thread(const Attention<bf16> &a, int first, int rows) {
    RowPair pair;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = first + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * i;
        pair.row[i] = row < rows ? row : -1;
        pair.span[i] = span_of(row < rows ? a.position[row] : -1, a.window);
    }
    return pair;
}

// The positions that any of a block's rows sees.
static __device__ __forceinline__ Span span_of_rows(const Attention<bf16> &a, int from, int rows) {
    int first = 0x7fffffff, last = -1;
#pragma unroll
    for (int i = 0; i < ROWS; i += 32) {
        int row = from + i + threadIdx.x % 32, position = row < rows ? a.position[row] : -1;
        if (position >= 0) first = min(first, span_of(position, a.window).first);
        last = max(last, position);
    }
    return Span{__reduce_min_sync(BS_FULL, first), __reduce_max_sync(BS_FULL, last)};
}

// A thread's share of the queries, times the scale: products with keys are scores in units of log2.
template <int D>
struct Queries {
    u32 at[D / 16][4];

    __device__ __forceinline__ void read(const Attention<bf16> &a, int head, const RowPair &pair) {
#pragma unroll
        for (int s = 0; s < D / 16; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float by = a.scale * LOG2_E;
                int row = pair.row[i % 2], d = 16 * s + i / 2 * 8 + threadIdx.x % 4 * 2;
                float2 q = make_float2(0.0f, 0.0f);
                if (row >= 0) q = *(const float2 *)(a.q + ((i64)row * a.heads + head) * D + d);
                at[s][i] = pack_bf16(q.x * by, q.y * by);
            }
    }
};

// Of each row pair: values in sums [d / 8], and the running maximum and sum.
template <int D>
struct Outputs {
    float acc[D / 2];  // [4 n + i]: value 8n + 2 (lane % 4) + i % 2 of row i / 2
    float top[2], sum[2];
};

// cap * tanh(score / cap), by e to the power of twice that.
static __device__ __forceinline__ void cap_scores(float cap, float (&score)[TILE / 2]) {
    if (!(cap > 0.0f)) return;
    float by = 2.0f / cap, most = cap * LOG2_E;
#pragma unroll
    for (int i = 0; i < TILE / 2; i++) score[i] = most - __fdividef(2.0f * most, 1.0f + exp2_fast(score[i] * by));
}

// Scores of unseen positions to -inf.
static __device__ __forceinline__ void mask_scores(const RowPair &pair, int from, float (&score)[TILE / 2]) {
    if (pair.see_all(from)) return;
#pragma unroll
    for (int i = 0; i < TILE / 2; i++) {
        int t = from + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
        if (!pair.span[i / 2 % 2].has(t)) score[i] = -BS_INFINITY;
    }
}

// 2 to the x; what is too small for a normal number is 0.
static __device__ __forceinline__ float exp2_flushed(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ float of_quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(BS_FULL, x, 1));
    return fmaxf(x, __shfl_xor_sync(BS_FULL, x, 2));
}

// Scores to weights; `by` is what the sums of each row so far shrink by, to the new maximum.
template <int D>
static __device__ __forceinline__ void soften(float (&score)[TILE / 2], Outputs<D> &out, float (&by)[2]) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float top = out.top[r], sum = 0.0f;
#pragma unroll
        for (int n = 0; n < TILE / 8; n++) top = fmaxf(top, fmaxf(score[4 * n + 2 * r], score[4 * n + 2 * r + 1]));
        top = of_quad_max(top);
        // a row that has seen nothing yet has nothing to shrink, and its scores are all -inf
        float base = top == -BS_INFINITY ? 0.0f : top;
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int i = 2 * r; i < 2 * r + 2; i++) {
                score[4 * n + i] = exp2_flushed(score[4 * n + i] - base);
                sum += score[4 * n + i];
            }
        by[r] = exp2_flushed(out.top[r] - base);
        out.top[r] = top;
        out.sum[r] = fmaf(out.sum[r], by[r], sum);
    }
}

template <int D>
static __device__ __forceinline__ void shrink(Outputs<D> &out, const float (&by)[2]) {
    // the maximum of a row settles soon
    if (__all_sync(BS_FULL, by[0] == 1.0f && by[1] == 1.0f)) return;
#pragma unroll
    for (int i = 0; i < D / 2; i++) out.acc[i] *= by[i / 2 % 2];
}

// Weights of 16 positions as the matrix units' operand.
static __device__ __forceinline__ void code_weights(const float *weight, u32 (&w)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = pack_bf16(weight[2 * i], weight[2 * i + 1]);
}

template <int D>
static __device__ __forceinline__ void finish_rows(const Attention<bf16> &a, int head, const RowPair &pair,
                                                   const Outputs<D> &out) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float sum = out.sum[r] + __shfl_xor_sync(BS_FULL, out.sum[r], 1);
        sum += __shfl_xor_sync(BS_FULL, sum, 2);
        if (pair.row[r] < 0) continue;
        // a row before the first position sees nothing: its sum is empty, its output zero
        float by = pair.span[r].last < 0 ? 0.0f : 1.0f / sum;
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            a.finish(pair.row[r], head, 8 * n + threadIdx.x % 4 * 2,
                     Pack<2>{{out.acc[4 * n + 2 * r] * by, out.acc[4 * n + 2 * r + 1] * by}});
    }
}
