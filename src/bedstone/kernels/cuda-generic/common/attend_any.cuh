// Attention of any sizes in float32, as exact as its functions.
//
// A row's positions go by in tiles of 64 that begin at multiples of 64; tile i belongs to piece
// i % 8. The pieces are the blocks of a cluster, or one block after another; each has a running
// maximum and sum, and they are put together in order. So what a row computes is fixed by its own
// position: neither rows beside it nor the number of blocks change a bit of it.
#pragma once
#include "attend_merge.cuh"

#define PIECES 8
#define TILE 64

// Shared memory of a block; dynamic, the queries and values of HEADS heads follow.
struct Scores {
    float weights[TILE][HEADS];
    float tops[ATTEND_WARPS][HEADS], sums[ATTEND_WARPS][HEADS];
    float shrink[HEADS];
};

struct Workspace {
    float *queries;  // [HEADS][queries_pitch]
    float *slices;   // [slices][HEADS][dv], as the threads sum values
    float *piece;    // [HEADS][dv]
    float *all;      // [HEADS][dv], of the pieces so far
    int queries_pitch;
};

#define SLICES (4 * ATTEND_THREADS)  // values of a head that the threads hold together

static __device__ __forceinline__ Workspace workspace_of(int dk, int dv) {
    extern __shared__ float4 memory[];
    Workspace w;
    w.queries_pitch = (dk + 31) / 32 * 32;
    w.queries = (float *)memory;
    w.slices = w.queries + HEADS * w.queries_pitch;
    w.piece = w.slices + HEADS * SLICES;
    w.all = w.piece + HEADS * dv;
    return w;
}

// N values of a row as floats, those from `count` on zero.
template <bool WIDE, int N, class T>
static __device__ __forceinline__ Pack<N> read_some(const T *p, int count) {
    Pack<N> v;
    if constexpr (WIDE) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            Pack<4> four = load<4>(p + i);
#pragma unroll
            for (int j = 0; j < 4; j++) v.at[i + j] = four.at[j];
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) v.at[i] = i < count ? to_f32(p[i]) : 0.0f;
    }
    return v;
}

// Scores gain the products of `width` values of a key; four threads share a key.
template <bool WIDE, class T>
static __device__ __forceinline__ void add_products(const T *key, const float *queries, int pitch, int width,
                                                    int heads, float (&score)[HEADS]) {
    constexpr int N = 16 / sizeof(T);
#pragma unroll(WIDE ? 4 : 1)
    for (int d = N * (threadIdx.x % 4); d < width; d += 4 * N) {
        Pack<N> k = read_some<WIDE, N>(key + d, width - d);
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            if (h >= heads) break;
            Pack<N> q = read_some<WIDE, N>(queries + h * pitch + d, width - d);
#pragma unroll
            for (int i = 0; i < N; i++) score[h] = fmaf(q.at[i], k.at[i], score[h]);
        }
    }
}

// Of the four threads that share a key, each gets the whole scores of two heads, `first_of` on.
static __device__ __forceinline__ int first_of() { return threadIdx.x % 2 * 4 + threadIdx.x % 4 / 2 * 2; }

static __device__ __forceinline__ void share_scores(const float (&score)[HEADS], float (&own)[2]) {
    bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    float half[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        half[i] = __fadd_rn(odd ? score[4 + i] : score[i],
                            __shfl_xor_sync(BS_FULL, odd ? score[i] : score[4 + i], 1));
#pragma unroll
    for (int i = 0; i < 2; i++)
        own[i] = __fadd_rn(high ? half[2 + i] : half[i],
                           __shfl_xor_sync(BS_FULL, high ? half[i] : half[2 + i], 2));
}

template <bool WIDE, class K>
static __device__ __forceinline__ void score_key(const Attention<K> &a, const Workspace &w, const Heads &heads,
                                                 int t, float (&own)[2]) {
    float score[HEADS] = {};
    if (heads.span.has(t)) {
        int pitch = w.queries_pitch;
        add_products<WIDE>(a.k.at(t, heads.group), w.queries, pitch, a.k_own, heads.count, score);
        if (a.k_own < a.dk)
            add_products<WIDE>(a.k_tail.at(t, 0), w.queries + a.k_own, pitch, a.dk - a.k_own, heads.count, score);
    }
    share_scores(score, own);
#pragma unroll
    for (int i = 0; i < 2; i++) own[i] = heads.span.has(t) ? a.capped(own[i]) : -BS_INFINITY;
}

// The largest of a warp's eight keys, for each head of this thread.
static __device__ __forceinline__ float top_of_keys(float x) {
#pragma unroll
    for (int step = 4; step < 32; step *= 2) x = fmaxf(x, __shfl_xor_sync(BS_FULL, x, step));
    return x;
}

static __device__ __forceinline__ float sum_of_keys(float x) {
#pragma unroll
    for (int step = 4; step < 32; step *= 2) x = __fadd_rn(x, __shfl_xor_sync(BS_FULL, x, step));
    return x;
}

// Scores of a tile to weights e^(score - top), those of unseen positions to 0; `top` and `sum` are of
// this thread's two heads.
template <bool WIDE, class K>
static __device__ __forceinline__ void weigh_tile(const Attention<K> &a, const Workspace &w, const Heads &heads,
                                                  int from, Scores &scores, float (&top)[2], float (&sum)[2]) {
    int warp = threadIdx.x / 32, key = threadIdx.x / 4, h = first_of();
    float own[2];
    score_key<WIDE>(a, w, heads, from + key, own);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float highest = top_of_keys(own[i]);
        if (threadIdx.x % 32 < 4) scores.tops[warp][h + i] = highest;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float highest = top[i];
#pragma unroll
        for (int j = 0; j < ATTEND_WARPS; j++) highest = fmaxf(highest, scores.tops[j][h + i]);
        float shrink = shrunk(top[i], highest);
        float weight = heads.span.has(from + key) ? expf(__fsub_rn(own[i], highest)) : 0.0f;
        top[i] = highest;
        sum[i] = fmaf(sum[i], shrink, weight);
        scores.weights[key][h + i] = weight;
        if (threadIdx.x < 4) scores.shrink[h + i] = shrink;
    }
    __syncthreads();
}

// The threads share the values of a row by fours, and the positions of a tile by slices.
struct Share {
    int d, slice, slices;
};

static __device__ __forceinline__ Share share_of(int dv) {
    int fours = (dv + 3) / 4;
    return Share{(int)threadIdx.x % fours * 4, (int)threadIdx.x / fours, ATTEND_THREADS / fours};
}

template <bool WIDE, class K>
static __device__ __forceinline__ void add_values(const Attention<K> &a, const Heads &heads, const Scores &scores,
                                                  const Share &share, int from, Pack<4> (&acc)[HEADS]) {
#pragma unroll
    for (int h = 0; h < HEADS; h++) acc[h] = each(acc[h], [&](float x) { return __fmul_rn(x, scores.shrink[h]); });
    if (share.slice >= share.slices) return;
#pragma unroll(WIDE ? 2 : 1)
    for (int t = share.slice; t < TILE; t += share.slices) {
        // what nobody sees may be anything, and 0 times that is not 0
        if (!heads.span.has(from + t)) continue;
        Pack<4> v = read_some<WIDE, 4>(a.v.at(from + t, heads.group) + share.d, a.dv - share.d);
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            if (h >= heads.count) break;
            float weight = scores.weights[t][h];
            acc[h] = each(acc[h], v, [weight](float sum, float x) { return fmaf(weight, x, sum); });
        }
    }
}

// A piece's values and sums, from those of its threads, into shared memory.
static __device__ __forceinline__ void fold_piece(const Workspace &w, const Heads &heads, const Share &share, int dv,
                                                  Scores &scores, State &state, const float (&top)[2],
                                                  const float (&sum)[2], const Pack<4> (&acc)[HEADS]) {
    int h = first_of();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float total = sum_of_keys(sum[i]);
        if (threadIdx.x % 32 < 4) scores.sums[threadIdx.x / 32][h + i] = total;
        if (threadIdx.x < 4) state.top[h + i] = top[i];
    }
#pragma unroll
    for (int j = 0; j < HEADS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (share.slice < share.slices && share.d + i < dv)
                w.slices[(share.slice * HEADS + j) * dv + share.d + i] = acc[j].at[i];
    __syncthreads();
    if (threadIdx.x < HEADS) {
        float total = 0.0f;
#pragma unroll
        for (int j = 0; j < ATTEND_WARPS; j++) total = __fadd_rn(total, scores.sums[j][threadIdx.x]);
        state.sum[threadIdx.x] = total;
    }
    for (int i = threadIdx.x; i < heads.count * dv; i += ATTEND_THREADS) {
        float total = 0.0f;
        for (int s = 0; s < share.slices; s++) total = __fadd_rn(total, w.slices[s * HEADS * dv + i]);
        w.piece[i] = total;
    }
    __syncthreads();
}

template <bool WIDE, class K>
static __device__ __forceinline__ void attend_piece(const Attention<K> &a, const Workspace &w, const Heads &heads,
                                                    int piece, Scores &scores, State &state) {
    float top[2] = {-BS_INFINITY, -BS_INFINITY}, sum[2] = {};
    Pack<4> acc[HEADS] = {};
    Share share = share_of(a.dv);
    int tile = heads.span.first / TILE;
    tile += (piece - tile % PIECES + PIECES) % PIECES;
    for (; tile * TILE <= heads.span.last; tile += PIECES) {
        weigh_tile<WIDE>(a, w, heads, tile * TILE, scores, top, sum);
        add_values<WIDE>(a, heads, scores, share, tile * TILE, acc);
    }
    fold_piece(w, heads, share, a.dv, scores, state, top, sum, acc);
}

// One block attends all pieces; `all` is what they have come to.
template <class K>
static __device__ __forceinline__ void merge_piece(const Attention<K> &a, const Workspace &w, const Heads &heads,
                                                   int piece, const State &state, State &all) {
    for (int i = threadIdx.x; i < heads.count * a.dv; i += ATTEND_THREADS) {
        int h = i / a.dv;
        Merged merged = {-BS_INFINITY, 0.0f, 0.0f};
        if (piece) merged = Merged{all.top[h], all.sum[h], w.all[i]};
        merged.add(state.top[h], state.sum[h], w.piece[i]);
        w.all[i] = merged.value;
        if (piece == PIECES - 1) finish_value(a, heads, i, merged);
    }
    __syncthreads();
    if (threadIdx.x < HEADS) {
        int h = threadIdx.x;
        Merged merged = {-BS_INFINITY, 0.0f, 0.0f};
        if (piece) merged = Merged{all.top[h], all.sum[h], 0.0f};
        merged.add(state.top[h], state.sum[h], 0.0f);
        all.top[h] = merged.top;
        all.sum[h] = merged.sum;
    }
    __syncthreads();
}

template <class K>
static __device__ __forceinline__ void lay_queries(const Attention<K> &a, const Workspace &w, const Heads &heads) {
    for (int h = 0; h < heads.count; h++)
        for (int d = threadIdx.x; d < w.queries_pitch; d += ATTEND_THREADS)
            w.queries[h * w.queries_pitch + d] = d < a.dk ? a.query(heads.row, heads.first + h, d) : 0.0f;
    __syncthreads();
}

template <bool WIDE, class K>
static __device__ __forceinline__ void attend_lot(const Attention<K> &a, const Heads &heads) {
    __shared__ Scores scores;
    __shared__ State state, all;
    Workspace w = workspace_of(a.dk, a.dv);
    lay_queries(a, w, heads);
    bool alone = cluster_size() == 1;
    for (int piece = cluster_rank(); piece < PIECES; piece += cluster_size()) {
        attend_piece<WIDE>(a, w, heads, piece, scores, state);
        if (alone) merge_piece(a, w, heads, piece, state, all);
    }
    if (!alone) merge_cluster(a, w.piece, heads, state);
}

template <class K>
static __device__ __forceinline__ void attend_any(const Attention<K> &a) {
    bool wide = a.k.wide(a.k_own) && a.v.wide(a.dv) && (a.k_own == a.dk || a.k_tail.wide(a.dk - a.k_own));
    each_lot(a, [&](const Heads &heads) {
        if (wide) attend_lot<true>(a, heads);
        else attend_lot<false>(a, heads);
    });
}
