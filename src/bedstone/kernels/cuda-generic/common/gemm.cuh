// Products of coded activations: what a launch is given, and where its results go. The entries that
// make a `Job` are written once, in gemm_entries.cuh.
#pragma once
#include "abi.cuh"
#include "act.cuh"
#include "weights.cuh"

// A matrix [n, k], and where its products go: rows of `y`, or rows `slot` of a table. They have `bias` [n]
// added, then the rows `add`; where there is a `cap`, they are bent to stay within it.
struct Part {
    const u8 *w;
    const float *bias;
    float *y;
    cache_t *table;
    const int *slot;
    int n;
    const float *add;
    float cap;
};

// COUNT matrices of one input; of a gated unit the gate and what it gates, with outputs of its own.
template <int COUNT, bool GATED>
struct Job {
    static constexpr int count = COUNT;
    static constexpr bool gated = GATED;
    const code_t *x;
    int rows, k;
    Part part[COUNT];
    float *y;
    code_t *codes;
    int act;
};

template <class T>
static __device__ __forceinline__ T least(T a, T b) { return b < a ? b : a; }

static __device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Matrices whose outputs are dealt: a gated unit's two are dealt as one.
template <class J>
static constexpr int dealt = J::gated ? 1 : J::count;

// Tiles of `outs` outputs of every matrix.
template <class J>
static __device__ __forceinline__ int tiles_of(const J &job, int outs) {
    int tiles = 0;
#pragma unroll
    for (int i = 0; i < dealt<J>; i++) tiles += ceil_div(job.part[i].n, outs);
    return tiles;
}

// The matrix that tile `tile` is of, and which it is; the tile becomes one of that matrix alone.
template <class J>
static __device__ __forceinline__ Part part_of(const J &job, int outs, int &tile, int &matrix) {
    Part found = job.part[0];
    matrix = 0;
#pragma unroll
    for (int i = 1; i < dealt<J>; i++) {
        int before = ceil_div(found.n, outs);
        if (tile < before) break;
        tile -= before;
        matrix = i;
        found = job.part[i];
    }
    return found;
}

template <class J>
static __device__ __forceinline__ Part part_of(const J &job, int outs, int &tile) {
    int matrix;
    return part_of(job, outs, tile, matrix);
}

// --- results -----------------------------------------------------------------------------------

// Four values side by side, of which `left` are there.
template <class T>
static __device__ __forceinline__ void store_four(T *at, const float (&v)[4], int left) {
    if (left >= 4 && (u64)at % (4 * sizeof(T)) == 0) {
        if constexpr (sizeof(T) == 4) *(float4 *)at = make_float4(v[0], v[1], v[2], v[3]);
        else *(uint2 *)at = make_uint2(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]));
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left) at[i] = from_f32<T>(v[i]);
    }
}

// The table row of `row`; negative where nothing is written.
static __device__ __forceinline__ i64 place_of(const Part &part, int row) {
    return part.slot ? part.slot[row] : row;
}

// What becomes of a product that goes to `at`.
static __device__ __forceinline__ float finished(const Part &part, float product, int column, i64 at) {
    if (part.bias) product += part.bias[column];
    if (part.add) product += part.add[at];
    return part.cap > 0.f ? __fmul_rn(part.cap, tanhf(__fdiv_rn(product, part.cap))) : product;
}

// Products of four outputs from `column` on, for the row at `place`.
static __device__ __forceinline__ void put_four(const Part &part, i64 place, int column, float (&v)[4]) {
    int left = part.n - column;
    if (place < 0 || left <= 0) return;
    i64 at = place * part.n + column;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < left) v[i] = finished(part, v[i], column + i, at + i);
    if (part.slot) store_four(part.table + at, v, left);
    else store_four(part.y + at, v, left);
}

static __device__ __forceinline__ void put_one(const Part &part, i64 place, int column, float a) {
    if (place < 0 || column >= part.n) return;
    i64 at = place * part.n + column;
    a = finished(part, a, column, at);
    if (part.slot) part.table[at] = from_f32<cache_t>(a);
    else part.y[at] = a;
}

// What a gated unit makes of a gate and what it gates.
template <class J>
static __device__ __forceinline__ void put_gated(const J &job, int row, int column, float gate, float up) {
    if (column >= job.part[0].n) return;
    i64 at = (i64)row * job.part[0].n + column;
    float made = gated(gate, up, job.act);
    if (job.y) job.y[at] = made;
    if (job.codes) job.codes[at] = from_f32<code_t>(made);
}

template <class J>
static __device__ __forceinline__ void put_gated_four(const J &job, int row, int column, const float (&gate)[4],
                                                      const float (&up)[4]) {
    int n = job.part[0].n, left = n - column;
    if (left <= 0) return;
    i64 at = (i64)row * n + column;
    float made[4];
#pragma unroll
    for (int i = 0; i < 4; i++) made[i] = gated(gate[i], up[i], job.act);
    if (job.y) store_four(job.y + at, made, left);
    if (job.codes) store_four(job.codes + at, made, left);
}
