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

template <class T>
static __device__ __forceinline__ void store_pair(T *at, float a, float b, bool both) {
    if (both && (u64)at % (2 * sizeof(T)) == 0) {
        if constexpr (sizeof(T) == 4) *(float2 *)at = make_float2(a, b);
        else *(u32 *)at = pack_bf16(a, b);
    } else {
        at[0] = from_f32<T>(a);
        if (both) at[1] = from_f32<T>(b);
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

// Products of outputs `column` and the next, for the row at `place`.
static __device__ __forceinline__ void put_pair(const Part &part, i64 place, int column, float a, float b) {
    if (place < 0 || column >= part.n) return;
    bool both = column + 1 < part.n;
    i64 at = place * part.n + column;
    a = finished(part, a, column, at);
    if (both) b = finished(part, b, column + 1, at + 1);
    if (part.slot) store_pair(part.table + at, a, b, both);
    else store_pair(part.y + at, a, b, both);
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
static __device__ __forceinline__ void put_gated_pair(const J &job, int row, int column, float2 gate, float2 up) {
    int n = job.part[0].n;
    if (column >= n) return;
    bool both = column + 1 < n;
    i64 at = (i64)row * n + column;
    float a = gated(gate.x, up.x, job.act), b = gated(gate.y, up.y, job.act);
    if (job.y) store_pair(job.y + at, a, b, both);
    if (job.codes) store_pair(job.codes + at, a, b, both);
}
