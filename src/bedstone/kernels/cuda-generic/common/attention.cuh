// Causal attention of a group's heads over rows of keys and values: what an entry is given, and what
// becomes of a finished output.
#pragma once
#include "act.cuh"
#include "cluster.cuh"
#include "part.cuh"

#define ATTEND_THREADS 256
#define ATTEND_WARPS (ATTEND_THREADS / 32)
#define HEADS 8  // of a pass over the positions: those of one group, as far as there are as many
#define BS_INFINITY __int_as_float(0x7f800000)

// Rows by position: of a sequence's pages, or one after another; each holds every group's values.
template <class T>
struct Lines {
    const T *x;
    const int *pages;  // null: position t is row t
    int page;
    i64 pitch, unit;  // values from a row to the next, from a group to the next

    __device__ __forceinline__ i64 row(int t) const {
        return pages ? (i64)pages[t / page] * page + t % page : t;
    }
    __device__ __forceinline__ const T *at(int t, int group) const {
        return x + row(t) * pitch + group * unit;
    }
    // Whether 16 bytes can be read at a time.
    __device__ __forceinline__ bool wide(int width) const {
        constexpr int N = 16 / sizeof(T);
        return pitch % N == 0 && unit % N == 0 && width % N == 0 && aligned(x);
    }
};

// A key is its first `own` values in `k` and the others in `k_tail`; a query likewise.
template <class K>
struct Attention {
    const float *q, *q_tail;
    int q_own, k_own;
    Lines<K> k, v;
    Lines<cache_t> k_tail;
    const int *position;
    const float *gate;  // null: none
    Window from_gate;
    Forms out;
    int heads, groups, dk, dv, window;
    float scale, softcap;

    // Value d of a query.
    __device__ __forceinline__ float query(i64 row, int head, int d) const {
        i64 at = row * heads + head;
        return d < q_own ? q[at * q_own + d] : q_tail[at * (dk - q_own) + d - q_own];
    }
    __device__ __forceinline__ float capped(float product) const {
        float score = __fmul_rn(product, scale);
        return softcap > 0.0f ? __fmul_rn(softcap, tanhf(__fdiv_rn(score, softcap))) : score;
    }
    // N values of head `head` of a row, those from d on.
    template <int N>
    __device__ __forceinline__ void finish(i64 row, int head, int d, Pack<N> v) const {
        if (gate) {
            Pack<N> by;
#pragma unroll
            for (int i = 0; i < N; i++) by.at[i] = gate[from_gate.at(row, head * dv + d + i)];
            v = each(v, by, [](float a, float b) { return __fmul_rn(a, sigmoid(b)); });
        }
        out.give((row * heads + head) * dv + d, v);
    }
};

// The positions that a row sees.
struct Span {
    int first, last;
    __device__ __forceinline__ bool has(int t) const { return t >= first && t <= last; }
};

static __device__ __forceinline__ Span span_of(int position, int window) {
    return Span{window > 0 ? max(position - window + 1, 0) : 0, position};
}

// Up to HEADS heads of one group of one row.
struct Heads {
    int row, group, first, count;
    Span span;
};

// Calls f with the heads that this block is to attend, one lot after another.
template <class K, class F>
static __device__ __forceinline__ void each_lot(const Attention<K> &a, F f) {
    int of_group = a.heads / a.groups, lots = (of_group + HEADS - 1) / HEADS;
    int row = blockIdx.x;
    Span span = span_of(a.position[row], a.window);
    for (int lot = blockIdx.y; lot < a.groups * lots; lot += gridDim.y) {
        int group = lot / lots, from = lot % lots * HEADS;
        f(Heads{row, group, group * of_group + from, min(HEADS, of_group - from), span});
    }
}

// What a sum relative to `own` counts where the top is `top`.
static __device__ __forceinline__ float shrunk(float own, float top) {
    return own == top ? 1.0f : expf(__fsub_rn(own, top));
}
