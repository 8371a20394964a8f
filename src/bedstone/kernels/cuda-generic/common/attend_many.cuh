// Attention of many rows of one sequence over bfloat16 keys and values on the matrix units.
//
// A block is 128 rows of one head, a warp 16 of them. Keys and values go by in tiles of positions, the
// next on its way while one is multiplied; weights are bfloat16, sums and the softmax float32.
#pragma once
#include "attend_rows.cuh"

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

template <int D>
static __device__ __forceinline__ void multiply_keys(const Queries<D> &q, Tile<D> keys, float (&score)[TILE / 2]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < D / 16; s += 2)
#pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
            u32 k[4];
            load_matrices(keys.at(8 * n + lane % 8, 2 * s + lane / 8), k);
            mma_16x8x16(score + 4 * n, q.at[s], k[0], k[1]);
            mma_16x8x16(score + 4 * n, q.at[s + 1], k[2], k[3]);
        }
}

template <int D>
static __device__ __forceinline__ void add_values(const float (&weight)[TILE / 2], Tile<D> values, Outputs<D> &out) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < TILE / 16; s++) {
        u32 w[4];
        code_weights(weight + 8 * s, w);
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            u32 v[4];
            load_transposed(values.at(16 * s + lane % 16, n + lane / 16), v);
            mma_16x8x16(out.acc + 4 * n, w, v[0], v[1]);
            mma_16x8x16(out.acc + 4 * n + 4, w, v[2], v[3]);
        }
    }
}

template <int D>
static __device__ __forceinline__ void attend_tile(const Attention<bf16> &a, const Queries<D> &q, const RowPair &pair,
                                                   int from, Tile<D> keys, Tile<D> values, Outputs<D> &out) {
    if (!pair.see_any(from)) return;
    float score[TILE / 2] = {};
    multiply_keys(q, keys, score);
    cap_scores(a.softcap, score);
    mask_scores(pair, from, score);
    float by[2];
    soften(score, out, by);
    shrink(out, by);
    add_values(score, values, out);
}

// Rows [first, first + ROWS) of head `blockIdx.y`.
template <int D>
static __device__ __forceinline__ void attend_many(const Attention<bf16> &a, int first, int rows) {
    extern __shared__ float4 memory[];
    u32 base = (u32)__cvta_generic_to_shared(memory);
    constexpr int BYTES = TILE * D * 2;
    int head = blockIdx.y, group = head / (a.heads / a.groups);
    RowPair pair = rows_of_thread(a, first, rows);
    Span span = span_of_rows(a, first, rows);
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
