// xlinear, xglu, xdown of coded activations, on the matrix units: rows that chose one expert go together,
// so that its weights are read once for many of them.
#define WARPS 4
#include "act.cuh"
#include "dot.cuh"
#include "families.cuh"
#include "pack.cuh"
#include "pairs.cuh"
#include "tile.cuh"

static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }

// Rows g and g + 8 of the 16 outputs from `from` on of a matrix of n; past the last it again.
static __device__ __forceinline__ const u8 *weight_row(const u8 *w, i64 expert, int n, int from, int half, int k) {
    return w + (expert * n + min(from + tile_group() + 8 * half, n - 1)) * format::bytes(k);
}

// Pairs that go by together; without a list all from 0 on, which are rows.
struct Run {
    const u16 *list;
    int count;

    __device__ __forceinline__ int at(int i) const { return list ? list[i] : i; }
    __device__ __forceinline__ Run from(int first) const {
        return list ? Run{list + first, count - first} : Run{nullptr, count - first};
    }
};

// --- products whose outputs are each pair's own ------------------------------------------------

#define THREADS (32 * WARPS)
#define OUTPUTS (16 * WARPS)  // of a block
#define MANY 8                // eights of pairs that go by together
#define MOST_PAIRS 8192       // that are sorted at a time
#define SUMS_PITCH 20              // from one pair's sums to the next: other banks

// A block's shared memory.
struct Grouped {
    float4 sums[WARPS][2][8 * MANY * SUMS_PITCH / 4];  // what a warp made of one of two matrices
    int ends[MOST_EXPERTS];
    u16 list[MOST_PAIRS];
};

static __device__ __forceinline__ Grouped &grouped() {
    extern __shared__ float4 memory[];
    return *(Grouped *)memory;
}

// Products of activations with a stack, or with two of which one gates the other.
template <int M>
struct Product {
    const code_t *x;
    const u8 *w[M];
    float *y;
    code_t *codes;
    int k, n, per_row;  // per_row: pairs that share a row of x
    int act;

    // Four values of a pair from `i` on.
    __device__ __forceinline__ void put(i64 pair, int i, const float *const (&sums)[M]) const {
        Pack<4> v = load<4>(sums[0]);
        if constexpr (M == 2) v = each(v, load<4>(sums[1]), [&](float g, float u) { return gated(g, u, act); });
        Forms out = {y, codes};
        if (n % 4 == 0 && i < n) return out.give<4>(pair * n + i, v);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (i + j < n) out.give<1>(pair * n + i + j, Pack<1>{{v.at[j]}});
    }

    // What the warp made, by way of shared memory: of `count` pairs of the run from `start` on.
    template <int NB>
    __device__ __forceinline__ void put_tile(const Tile<M, NB> &tile, int from, i64 first, const Run &run, int start,
                                             int count) const {
        float *staged[M];
#pragma unroll
        for (int m = 0; m < M; m++) staged[m] = (float *)grouped().sums[warp()][m];
        __syncwarp();
        each_sum(tile, [&](int output, int column, const float (&sums)[M]) {
#pragma unroll
            for (int m = 0; m < M; m++) staged[m][column * SUMS_PITCH + output] = sums[m];
        });
        __syncwarp();
#pragma unroll 1
        for (int i = threadIdx.x % 32; i < 4 * count; i += 32) {
            const float *sums[M];
#pragma unroll
            for (int m = 0; m < M; m++) sums[m] = staged[m] + i / 4 * SUMS_PITCH + i % 4 * 4;
            put(first + run.at(start + i / 4), from + i % 4 * 4, sums);
        }
    }

    // Outputs [from, from + 16) of matrix `expert` for some of a run's pairs, the first of which is `first`.
    template <int NB>
    __device__ __forceinline__ void make(i64 expert, int from, i64 first, const Run &run, int start) const {
        Tile<M, NB> tile;
        int count = min(run.count - start, 8 * NB);
        tile.k = k;
        tile.eights = (count + 7) / 8;
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) tile.w[m][h] = weight_row(w[m], expert, n, from, h, k);
#pragma unroll
        for (int f = 0; f < NB; f++) {
            i64 pair = first + run.at(start + min(8 * f + tile_group(), count - 1));
            tile.x[f] = x + pair / per_row * k;
        }
        multiply<format>(tile);
        put_tile(tile, from, first, run, start, count);
    }

    __device__ __forceinline__ void make_run(i64 expert, int from, i64 first, Run run) const {
        if (run.count <= 8) return make<1>(expert, from, first, run, 0);
        for (int start = 0; start < run.count; start += 8 * MANY) make<MANY>(expert, from, first, run, start);
    }
};

// Grid: outputs, experts in turn.
template <int M>
static __device__ __forceinline__ void multiply_routed(const Product<M> &product, const int *ids, int rows, int chosen) {
    Experts mine = {(int)blockIdx.y, (int)gridDim.y};
    int from = blockIdx.x * OUTPUTS + warp() * 16, at_once = MOST_PAIRS / chosen;
    for (int row = 0; row < rows; row += at_once) {
        i64 first = (i64)row * chosen;
        Pairs pairs = sort_pairs(ids + first, min(at_once, rows - row) * chosen, mine, grouped().list,
                                 grouped().ends);
        if (from < product.n)
            each_expert(pairs, mine, 0, 1, [&](int expert, const u16 *own, int count) {
                product.make_run(expert, from, first, Run{own, count});
            });
        __syncthreads();
    }
}

#if BS_WANTED(BS_ID_xlinear)
BS_KERNEL(THREADS)
BS_ENTRY(xlinear_q_, )(const code_t *xq, const int *ids, const u8 *w, float *y, int rows, int chosen, int units,
                       int k, int n) {
    before_next();
    after_previous();
    multiply_routed<1>({xq, {w}, y, nullptr, k, n, units > 1 ? 1 : chosen, 0}, ids, rows, chosen);
}
#endif

// What gates the network that every row takes: sums go as a product with a float32 matrix goes.
struct Gate {
    const float *x, *w;
    float *share;
};

// Every row's outputs of the shared network: tiles of outputs and rows are dealt out over the grid.
static __device__ __forceinline__ void multiply_shared(const Product<2> &product, int rows) {
    int blocks = gridDim.x * gridDim.y, outputs = (product.n + 15) / 16, at_once = 8 * MANY;
    int items = outputs * ((rows + at_once - 1) / at_once);
    for (int i = (blockIdx.y * gridDim.x + blockIdx.x) * WARPS + warp(); i < items; i += blocks * WARPS) {
        int first = i / outputs * at_once;
        product.make_run(0, i % outputs * 16, first, Run{nullptr, min(at_once, rows - first)});
    }
}

static __device__ __forceinline__ void make_shares(const Gate &gate, int rows, int k) {
    int blocks = gridDim.x * gridDim.y;
    for (int row = (blockIdx.y * gridDim.x + blockIdx.x) * WARPS + warp(); row < rows; row += blocks * WARPS) {
        Products<1> made = dot_rows<format_f32, 1>({(const u8 *)gate.w}, gate.x + (i64)row * k, k);
        if (threadIdx.x % 32 == 0) gate.share[row] = sigmoid(made.at[0]);
    }
}

template <bool SHARED>
static __device__ __forceinline__ void glu(const Product<2> &routed, const Product<2> &shared, const Gate &gate,
                                           const int *ids, int rows, int chosen) {
    before_next();
    after_previous();
    multiply_routed(routed, ids, rows, chosen);
    if constexpr (SHARED) {
        multiply_shared(shared, rows);
        if (gate.share) make_shares(gate, rows, routed.k);
    }
}

// --- products that are summed over a row's choices ----------------------------------------------

#define DOWN_WARPS 16
#define DOWN_THREADS (32 * DOWN_WARPS)
#define DOWN_ROWS 256   // of a block
#define MOST_PARTS 2048 // products of a block that wait for their sum
#define FEW 2           // eights of pairs that go by together

struct Parts {
    float sum[MOST_PARTS][16];
    u16 list[MOST_PARTS];
    int ends[MOST_EXPERTS];
};

struct Down {
    const code_t *x;
    const u8 *w;
    int k, n;

    // Outputs [from, from + 16) for a run's pairs, of which the first is row `first` of x, into `sums`.
    __device__ __forceinline__ void make(i64 expert, int from, i64 first, Run run, float (*sums)[16]) const {
        for (int start = 0; start < run.count; start += 8 * FEW) {
            Tile<1, FEW> tile;
            int count = min(run.count - start, 8 * FEW);
            tile.k = k;
            tile.eights = (count + 7) / 8;
            for (int h = 0; h < 2; h++) tile.w[0][h] = weight_row(w, expert, n, from, h, k);
#pragma unroll
            for (int f = 0; f < FEW; f++)
                tile.x[f] = x + (first + run.at(start + min(8 * f + tile_group(), count - 1))) * k;
            multiply<format>(tile);
            each_sum(tile, [&](int output, int column, const float (&made)[1]) {
                if (column < count) sums[run.at(start + column)][output] = made[0];
            });
        }
    }
};

struct Mix {
    const int *ids;
    const float *weights, *share;
    float *y;
    int rows, chosen;
};

// A row's products by its weights, in order; the shared network's, which is `own`, last.
static __device__ __forceinline__ float mixed(const Mix &mix, i64 row, const float (*chosen)[16], const float *own,
                                              int output) {
    float total = 0.0f;
    for (int j = 0; j < mix.chosen; j++)
        total = fmaf(chosen[j][output], mix.weights[row * mix.chosen + j], total);
    if (!own) return total;
    return total + (mix.share ? fmaf(own[output], mix.share[row], 0.0f) : own[output]);
}

// Rows [first, first + rows): as many as the parts of fit.
template <bool SHARED>
static __device__ void down_rows(const Down &routed, const Down &shared, const Mix &mix, int first, int rows,
                                 Parts &parts) {
    int from = blockIdx.x * 16, count = rows * mix.chosen;
    i64 pair = (i64)first * mix.chosen;
    Pairs pairs = sort_pairs(mix.ids + pair, count, Experts{0, 1}, parts.list, parts.ends);
    each_expert(pairs, Experts{0, 1}, warp(), DOWN_WARPS, [&](int expert, const u16 *own, int length) {
        routed.make(expert, from, pair, Run{own, length}, parts.sum);
    });
    if constexpr (SHARED)
        for (int row = warp() * 8 * FEW; row < rows; row += DOWN_WARPS * 8 * FEW)
            shared.make(0, from, first + row, Run{nullptr, min(8 * FEW, rows - row)}, parts.sum + count + row);
    __syncthreads();
    for (int i = threadIdx.x; i < rows * 16; i += DOWN_THREADS) {
        int row = i / 16, output = i % 16;
        if (from + output >= routed.n) continue;
        const float *own = SHARED ? parts.sum[count + row] : nullptr;
        mix.y[(i64)(first + row) * routed.n + from + output] =
            mixed(mix, first + row, parts.sum + row * mix.chosen, own, output);
    }
    __syncthreads();
}

// Grid: outputs, rows.
template <bool SHARED>
static __device__ __forceinline__ void down(const Down &routed, const Down &shared, const Mix &mix) {
    extern __shared__ float4 memory[];
    Parts &parts = *(Parts *)memory;
    before_next();
    after_previous();
    int at_once = MOST_PARTS / (mix.chosen + SHARED), end = min(DOWN_ROWS * ((int)blockIdx.y + 1), mix.rows);
    for (int row = DOWN_ROWS * blockIdx.y; row < end; row += at_once)
        down_rows<SHARED>(routed, shared, mix, row, min(at_once, end - row), parts);
}

// --- entries -----------------------------------------------------------------------------------

#define GLU(family, ending, made, out, with, shared_in, shared_out, size, shared, gate)                  \
    BS_KERNEL(THREADS)                                                                                   \
    BS_ENTRY(family, ending)(const code_t *xq, const int *ids, const u8 *wg, const u8 *wu BS_SPREAD shared_in,        \
                             BS_SPREAD made BS_SPREAD shared_out, BS_SIZES, int act BS_SPREAD size) {    \
        glu<with>({xq, {wg, wu}, BS_SPREAD out, k, n, chosen, act}, {BS_SPREAD shared}, {BS_SPREAD gate}, ids, rows, \
                  chosen);                                                                                   \
    }

#define GLU_PLAIN(ending, y, to_y, z, to_z) GLU(xglu_q_, ending, y, to_y, false, (), (), (), (), ())
#define GLU_S(ending, y, to_y, z, to_z)                                                                  \
    GLU(xglu_s_q_, ending, y, to_y, true, (, const u8 *sg, const u8 *su), (, BS_SPREAD z), (, int sn),   \
        (xq, {sg, su}, BS_SPREAD to_z, k, sn, 1, act), ())
#define GLU_SG(ending, y, to_y, z, to_z)                                                                 \
    GLU(xglu_sg_q_, ending, y, to_y, true,                                                              \
        (, const u8 *sg, const u8 *su, const float *gx, const float *gw), (, BS_SPREAD z, float *share), \
        (, int sn), (xq, {sg, su}, BS_SPREAD to_z, k, sn, 1, act), (gx, gw, share))

#if BS_WANTED(BS_ID_xglu)
BS_EACH_FORM(GLU_PLAIN)
#endif
#if BS_WANTED(BS_ID_xglu_s)
BS_EACH_FORM(GLU_S)
#endif
#if BS_WANTED(BS_ID_xglu_sg)
BS_EACH_FORM(GLU_SG)
#endif

#define DOWN(family, with, shared_in, size, shared, share)                                               \
    BS_KERNEL(DOWN_THREADS, 1)                                                                               \
    BS_ENTRY(family, )(const code_t *xq, const int *ids, const float *weights, const u8 *w BS_SPREAD shared_in,       \
                       float *y, BS_SIZES BS_SPREAD size) {                                              \
        down<with>({xq, w, k, n}, {BS_SPREAD shared}, {ids, weights, share, y, rows, chosen});            \
    }

#if BS_WANTED(BS_ID_xdown)
DOWN(xdown_q_, false, (), (), (), nullptr)
#endif
#if BS_WANTED(BS_ID_xdown_s)
DOWN(xdown_s_q_, true, (, const code_t *zq, const u8 *sw), (, int sn), (zq, sw, sn, n), nullptr)
#endif
#if BS_WANTED(BS_ID_xdown_sg)
DOWN(xdown_sg_q_, true, (, const code_t *zq, const u8 *sw, const float *share), (, int sn), (zq, sw, sn, n), share)
#endif
