// Attention of many rows of one sequence over bfloat16 keys and values on the matrix units.
//
// A block is 128 rows of one head, a warp 16 of them. Keys and values go by in tiles of positions, the
// next on its way while one is multiplied; weights are bfloat16, sums and the softmax float32.
#pragma once
#include "attention.cuh"
#include "mma.cuh"

#define ROWS 128                        // of a block
#define TILE (DEPTH > 128 ? 32 : 64)    // positions, fewer where a row's values fill the registers
#define LOG2_E 1.44269504f

// A tile in shared memory: rows of D values in pieces of 16 bytes, turned about so that eight rows of
// one column of pieces lie in different banks.
template <int D>
struct Tile {
    static constexpr int PIECES = D / 8;
    u32 address;

    __device__ __forceinline__ u32 at(int row, int piece) const {
        return address + (row * PIECES + (piece ^ row % 8)) * 16;
    }
};

static __device__ __forceinline__ void copy_16(u32 to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}
static __device__ __forceinline__ void copies_end() { asm volatile("cp.async.commit_group;"); }
template <int LEFT>
static __device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

static __device__ __forceinline__ void load_matrices(u32 address, u32 (&m)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address));
}
static __device__ __forceinline__ void load_transposed(u32 address, u32 (&m)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(address));
}

// Positions [from, from + TILE) of a group on their way; those past `last` stand for it.
template <int D>
static __device__ __forceinline__ void fetch_tile(const Attention<bf16> &a, int group, int from, int last,
                                                  Tile<D> keys, Tile<D> values) {
    constexpr int PIECES = Tile<D>::PIECES, STEP = ATTEND_THREADS / PIECES;
    int piece = threadIdx.x % PIECES;
#pragma unroll
    for (int i = 0; i < TILE / STEP; i++) {
        int row = threadIdx.x / PIECES + i * STEP;
        i64 at = a.k.row(min(from + row, last));
        copy_16(keys.at(row, piece), a.k.x + at * a.k.pitch + group * a.k.unit + piece * 8);
        copy_16(values.at(row, piece), a.v.x + at * a.v.pitch + group * a.v.unit + piece * 8);
    }
}

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
static __device__ __forceinline__ Span span_of_block(const RowPair &pair) {
    __shared__ int firsts[ATTEND_WARPS], lasts[ATTEND_WARPS];
    int first = 0x7fffffff, last = -1;
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (pair.span[i].last >= 0) {
            first = min(first, pair.span[i].first);
            last = max(last, pair.span[i].last);
        }
    firsts[threadIdx.x / 32] = __reduce_min_sync(BS_FULL, first);
    lasts[threadIdx.x / 32] = __reduce_max_sync(BS_FULL, last);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ATTEND_WARPS; i++) {
        first = min(first, firsts[i]);
        last = max(last, lasts[i]);
    }
    return Span{first, last};
}

template <int D>
struct Queries {
    u32 at[D / 16][4];

    __device__ __forceinline__ void read(const Attention<bf16> &a, int head, const RowPair &pair) {
#pragma unroll
        for (int s = 0; s < D / 16; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = pair.row[i % 2], d = 16 * s + i / 2 * 8 + threadIdx.x % 4 * 2;
                float2 q = make_float2(0.0f, 0.0f);
                if (row >= 0) q = *(const float2 *)(a.q + ((i64)row * a.heads + head) * D + d);
                at[s][i] = pack_bf16(q.x, q.y);
            }
    }
};

// Of each row pair: values in sums [d / 8], and the running maximum and sum.
template <int D>
struct Outputs {
    float acc[D / 8][4];
    float top[2], sum[2];
};

template <int D>
static __device__ __forceinline__ void multiply_keys(const Queries<D> &q, Tile<D> keys, float (&score)[TILE / 8][4]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < D / 16; s += 2)
#pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
            u32 k[4];
            load_matrices(keys.at(8 * n + lane % 8, 2 * s + lane / 8), k);
            mma_16x8x16(score[n], q.at[s], k[0], k[1]);
            mma_16x8x16(score[n], q.at[s + 1], k[2], k[3]);
        }
}

// Scores in units of log2; those of unseen positions -inf.
template <bool MASKED>
static __device__ __forceinline__ void scale_scores(const Attention<bf16> &a, const RowPair &pair, int from,
                                                    float (&score)[TILE / 8][4]) {
    float by = a.scale * LOG2_E;
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (a.softcap > 0.0f) score[n][i] = a.capped(score[n][i]) * LOG2_E;
            else score[n][i] *= by;
            if (!MASKED) continue;
            int t = from + 8 * n + threadIdx.x % 4 * 2 + i % 2;
            if (!pair.span[i / 2].has(t)) score[n][i] = -BS_INFINITY;
        }
}

static __device__ __forceinline__ float of_quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(BS_FULL, x, 1));
    return fmaxf(x, __shfl_xor_sync(BS_FULL, x, 2));
}

// Scores to weights; what was summed shrinks to the new maximum.
template <int D>
static __device__ __forceinline__ void soften(float (&score)[TILE / 8][4], Outputs<D> &out) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float top = out.top[r];
#pragma unroll
        for (int n = 0; n < TILE / 8; n++) top = fmaxf(top, fmaxf(score[n][2 * r], score[n][2 * r + 1]));
        top = of_quad_max(top);
        // a row that has seen nothing yet has nothing to shrink, and its scores are all -inf
        float base = top == -BS_INFINITY ? 0.0f : top;
        float by = exp2_fast(out.top[r] - base), sum = 0.0f;
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int i = 2 * r; i < 2 * r + 2; i++) {
                score[n][i] = exp2_fast(score[n][i] - base);
                sum += score[n][i];
            }
        out.top[r] = top;
        out.sum[r] = fmaf(out.sum[r], by, sum);
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            out.acc[n][2 * r] *= by;
            out.acc[n][2 * r + 1] *= by;
        }
    }
}

template <int D>
static __device__ __forceinline__ void add_values(const float (&weight)[TILE / 8][4], Tile<D> values, Outputs<D> &out) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < TILE / 16; s++) {
        const u32 w[4] = {pack_bf16(weight[2 * s][0], weight[2 * s][1]), pack_bf16(weight[2 * s][2], weight[2 * s][3]),
                          pack_bf16(weight[2 * s + 1][0], weight[2 * s + 1][1]),
                          pack_bf16(weight[2 * s + 1][2], weight[2 * s + 1][3])};
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            u32 v[4];
            load_transposed(values.at(16 * s + lane % 16, n + lane / 16), v);
            mma_16x8x16(out.acc[n], w, v[0], v[1]);
            mma_16x8x16(out.acc[n + 1], w, v[2], v[3]);
        }
    }
}

template <int D>
static __device__ __forceinline__ void attend_tile(const Attention<bf16> &a, const Queries<D> &q, const RowPair &pair,
                                                   int from, Tile<D> keys, Tile<D> values, Outputs<D> &out) {
    if (!pair.see_any(from)) return;
    float score[TILE / 8][4] = {};
    multiply_keys(q, keys, score);
    if (pair.see_all(from)) scale_scores<false>(a, pair, from, score);
    else scale_scores<true>(a, pair, from, score);
    soften(score, out);
    add_values(score, values, out);
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
                     Pack<2>{{out.acc[n][2 * r] * by, out.acc[n][2 * r + 1] * by}});
    }
}

// Rows [first, first + ROWS) of head `blockIdx.y`.
template <int D>
static __device__ __forceinline__ void attend_many(const Attention<bf16> &a, int first, int rows) {
    extern __shared__ float4 memory[];
    u32 base = (u32)__cvta_generic_to_shared(memory);
    constexpr int BYTES = TILE * D * 2;
    int head = blockIdx.y, group = head / (a.heads / a.groups);
    RowPair pair = rows_of_thread(a, first, rows);
    Span span = span_of_block(pair);
    Outputs<D> out = {};
    out.top[0] = out.top[1] = -BS_INFINITY;
    Queries<D> q;
    q.read(a, head, pair);
    auto keys = [&](int stage) { return Tile<D>{base + stage * 2 * BYTES}; };
    auto values = [&](int stage) { return Tile<D>{base + stage * 2 * BYTES + BYTES}; };
    int from = span.first / TILE * TILE, stage = 0;
    if (from <= span.last) fetch_tile<D>(a, group, from, span.last, keys(0), values(0));
    copies_end();
    for (; from <= span.last; from += TILE, stage ^= 1) {
        if (from + TILE <= span.last) fetch_tile<D>(a, group, from + TILE, span.last, keys(stage ^ 1), values(stage ^ 1));
        copies_end();
        copies_wait<1>();
        __syncthreads();
        attend_tile(a, q, pair, from, keys(stage), values(stage), out);
        __syncthreads();
    }
    finish_rows(a, head, pair, out);
}
