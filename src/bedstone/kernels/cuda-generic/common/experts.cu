// xlinear, xglu, xdown of float activations: a mixture's products, of one weight format. A warp makes one
// output of one choice of one row; a mixture's shared network is dealt out among the same blocks.
#define WARPS 4
#include "act.cuh"
#include "dot.cuh"
#include "families.cuh"
#include "pack.cuh"

#define THREADS (32 * WARPS)

static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
static __device__ __forceinline__ bool first_lane() { return threadIdx.x % 32 == 0; }

// --- xlinear -----------------------------------------------------------------------------------

// Grid: outputs, choices, rows.
#if BS_WANTED(BS_ID_xlinear)
BS_KERNEL(THREADS)
BS_ENTRY(xlinear_, )(const float *x, const int *ids, const u8 *w, float *y, int rows, int chosen, int units,
                     int k, int n) {
    int i = blockIdx.x * WARPS + warp();
    i64 row = blockIdx.z, pair = row * chosen + blockIdx.y;
    before_next();
    after_previous();
    if (i >= n) return;
    const u8 *from = w + ((i64)ids[pair] * n + i) * format::bytes(k);
    Products<1> made = dot_rows<format, 1>({from}, x + (units > 1 ? pair : row) * k, k);
    if (first_lane()) y[pair * n + i] = made.at[0];
}
#endif

// --- xglu --------------------------------------------------------------------------------------

#define UNITS 1  // outputs of a gated unit that a warp makes at once

// A gated unit: two matrices or stacks of them, and where it goes.
struct Unit {
    const u8 *gate, *up;
    Forms out;
    int n;

    // Outputs [from, from + UNITS) of matrix `expert`, for the activations `x`, as row `place`.
    __device__ __forceinline__ void make(const float *x, int k, int act, i64 expert, int from, i64 place) const {
        Rows<2 * UNITS> rows;
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            i64 at = (expert * n + min(from + i, n - 1)) * format::bytes(k);
            rows.at[i] = gate + at;
            rows.at[UNITS + i] = up + at;
        }
        Products<2 * UNITS> made = dot_rows<format, 2 * UNITS>(rows, x, k);
#pragma unroll
        for (int i = 0; i < UNITS; i++)
            if (threadIdx.x % 32 == i && from + i < n)
                out.give<1>(place * n + from + i, Pack<1>{{gated(made.at[i], made.at[UNITS + i], act)}});
    }
};

// What gates the network that every row takes.
struct Gate {
    const float *x, *w;
    float *share;

    __device__ __forceinline__ void make(int row, int k) const {
        Products<1> made = dot_rows<format_f32, 1>({(const u8 *)w}, x + (i64)row * k, k);
        if (first_lane()) share[row] = sigmoid(made.at[0]);
    }
};

struct Glu {
    const float *x;
    const int *ids;
    Unit routed, shared;
    Gate gate;
    int rows, chosen, k, act;
};

// Every row's outputs of the shared network; warps of the grid take one after another.
static __device__ __forceinline__ void glu_shared(const Glu &g) {
    int blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x, row = blockIdx.z;
    for (int i = (block * WARPS + warp()) * UNITS; i < g.shared.n; i += blocks * WARPS * UNITS)
        g.shared.make(g.x + (i64)row * g.k, g.k, g.act, 0, i, row);
    if (g.gate.share && block == blocks - 1 && warp() == WARPS - 1) g.gate.make(row, g.k);
}

template <bool SHARED>
static __device__ __forceinline__ void glu(const Glu &g) {
    int i = (blockIdx.x * WARPS + warp()) * UNITS;
    i64 row = blockIdx.z, pair = row * g.chosen + blockIdx.y;
    before_next();
    after_previous();
    if (i < g.routed.n) g.routed.make(g.x + row * g.k, g.k, g.act, g.ids[pair], i, pair);
    if constexpr (SHARED) glu_shared(g);
}

// --- xdown -------------------------------------------------------------------------------------

#define OUTPUTS (format::BLOCK > 1 ? 2 : 4)  // of a block
#define MOST_PARTS 1025  // choices of a row, and the shared network

// Products of one stack; with each choice of a row go activations of its own.
struct Down {
    const float *x;
    const u8 *w;
    int k, n;

    // Outputs [from, from + OUTPUTS) of matrix `expert` for activation row `at`; past the last it again.
    __device__ __forceinline__ Products<OUTPUTS> make(i64 at, i64 expert, int from) const {
        Rows<OUTPUTS> rows;
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++) rows.at[i] = w + (expert * n + min(from + i, n - 1)) * format::bytes(k);
        return dot_rows<format, OUTPUTS>(rows, x + at * k, k);
    }
};

// What the parts of a row's sum are weighted by; a shared network's, without a share, as it is.
struct Mix {
    const int *ids;
    const float *weights, *share;
    float *y;
    int chosen;

    __device__ __forceinline__ float sum(const Products<OUTPUTS> *parts, i64 row, int i, bool with_shared) const {
        float total = 0.0f;
        for (int j = 0; j < chosen; j++) total = fmaf(parts[j].at[i], weights[row * chosen + j], total);
        if (!with_shared) return total;
        float own = parts[chosen].at[i];
        return total + (share ? fmaf(own, share[row], 0.0f) : own);
    }
};

// Grid: outputs, rows. The warps of a block take a row's choices in turn; their sum goes in order.
template <bool SHARED>
static __device__ __forceinline__ void down(const Down &routed, const Down &shared, const Mix &mix) {
    __shared__ Products<OUTPUTS> parts[MOST_PARTS];
    i64 row = blockIdx.y;
    int from = blockIdx.x * OUTPUTS, i = threadIdx.x;
    before_next();
    after_previous();
    for (int j = warp(); j < mix.chosen + SHARED; j += WARPS) {
        i64 pair = row * mix.chosen + j;
        bool own = !SHARED || j < mix.chosen;
        Products<OUTPUTS> made = own ? routed.make(pair, mix.ids[pair], from) : shared.make(row, 0, from);
        if (first_lane()) parts[j] = made;
    }
    __syncthreads();
    if (i < OUTPUTS && from + i < routed.n) mix.y[row * routed.n + from + i] = mix.sum(parts, row, i, SHARED);
}

// --- entries -----------------------------------------------------------------------------------

#define GLU(family, ending, made, out, with, shared_in, shared_out, size, shared, gate)                  \
    BS_KERNEL(THREADS)                                                                                   \
    BS_ENTRY(family, ending)(const float *x, const int *ids, const u8 *wg, const u8 *wu BS_SPREAD shared_in,        \
                             BS_SPREAD made BS_SPREAD shared_out, BS_SIZES, int act BS_SPREAD size) {    \
        glu<with>({x, ids, {wg, wu, {BS_SPREAD out}, n}, {BS_SPREAD shared}, {BS_SPREAD gate}, rows, chosen, \
                   k, act});                                                                             \
    }

#define GLU_PLAIN(ending, y, to_y, z, to_z) GLU(xglu_, ending, y, to_y, false, (), (), (), (), ())
#define GLU_S(ending, y, to_y, z, to_z)                                                                  \
    GLU(xglu_s_, ending, y, to_y, true, (, const u8 *sg, const u8 *su), (, BS_SPREAD z), (, int sn),   \
        (sg, su, {BS_SPREAD to_z}, sn), ())
#define GLU_SG(ending, y, to_y, z, to_z)                                                                 \
    GLU(xglu_sg_, ending, y, to_y, true,                                                              \
        (, const u8 *sg, const u8 *su, const float *gx, const float *gw), (, BS_SPREAD z, float *share), \
        (, int sn), (sg, su, {BS_SPREAD to_z}, sn), (gx, gw, share))

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
    BS_KERNEL(THREADS)                                                                                 \
    BS_ENTRY(family, )(const float *x, const int *ids, const float *weights, const u8 *w BS_SPREAD shared_in,       \
                       float *y, BS_SIZES BS_SPREAD size) {                                              \
        down<with>({x, w, k, n}, {BS_SPREAD shared}, {ids, weights, share, y, chosen});            \
    }

#if BS_WANTED(BS_ID_xdown)
DOWN(xdown_, false, (), (), (), nullptr)
#endif
#if BS_WANTED(BS_ID_xdown_s)
DOWN(xdown_s_, true, (, const float *zx, const u8 *sw), (, int sn), (zx, sw, sn, n), nullptr)
#endif
#if BS_WANTED(BS_ID_xdown_sg)
DOWN(xdown_sg_, true, (, const float *zx, const u8 *sw, const float *share), (, int sn), (zx, sw, sn, n), share)
#endif
