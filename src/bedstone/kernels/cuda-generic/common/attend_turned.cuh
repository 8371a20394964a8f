// attention_turned, attention_turned_n: rotations of a row's queries and its key, and its attention.
#pragma once
#include "attend_block.cuh"
#include "attend_entry.cuh"
#include "turn.cuh"

// How heads turn, the newest key and its table, and the weights of both norms; null: not normed.
struct Rotation {
    Turn turn;
    Norm norm;
    const float *key, *w, *key_w;
    bf16 *table;
    const int *slot;
};

// Rotates queries, and the newest key, which is left in its table. No other thread of this launch can read
// it there, so its row of a tile is put in place by whoever has that tile. Half a warp takes a head; the key
// is the last of them.
template <int D>
struct Turned : Rotation {
    struct Values {
        const float *x;
        __device__ __forceinline__ float operator()(int i) const { return x[i]; }
    };
    typedef Head<16, D == 128 ? 4 : 2, Values> Rotated;

    i64 angle;
    int to;
    bool keeps;     // whether the newest key's tile is this block's
    uint4 *newest;  // the key, and behind it whether keys are to be mended
    Rotated first;

    __device__ __forceinline__ Turned(const Rotation &rotation, uint4 *newest)
        : Rotation(rotation), newest(newest), first(Values{key}, w, turn, norm) {}
    __device__ __forceinline__ bool &mends() const { return *(bool *)(newest + D / 8); }

    __device__ __forceinline__ Rotated head(const Attention<bf16> &a, const Lot &lot, int h) const {
        bool is_key = h >= lot.count;
        i64 at = is_key ? (i64)lot.row * a.groups + lot.group : (i64)lot.row * a.heads + lot.first + h;
        return Rotated(Values{(is_key ? key : a.q) + at * D}, is_key ? key_w : w, turn, norm);
    }

    __device__ __forceinline__ void load(const Attention<bf16> &a, const Lot &lot, Span span, Block<D> &) {
        angle = (i64)max(span.last, 0) * (turn.rot / 2);
        to = slot[lot.row];
        keeps = lot.has(max(span.last, 0) / TILE);
        first = head(a, lot, min((int)threadIdx.x / 16, lot.count - !keeps));
        first.load(angle);
    }

    __device__ __forceinline__ void read(const Attention<bf16> &a, const Lot &lot, Span span, Block<D> &block,
                                         Queries<D> &queries) {
        float *laid = block.inbox.values;
        int heads = lot.count + keeps;
#pragma unroll 1
        for (int h = threadIdx.x / 16;; h += 2 * WARPS) {
            first.give(h < heads ? laid + h * PITCH : nullptr, angle);
            if (h / (2 * WARPS) == (heads - 1) / (2 * WARPS)) break;
            first = head(a, lot, min(h + 2 * WARPS, heads - 1));
            first.load(angle);
        }
        __syncthreads();
        Floats<D> floats;
        floats.read(laid, PITCH, lot.count);
        queries.set(floats, lot.count);
        if (keeps) keep(a, lot, span, laid + lot.count * PITCH);
    }

    // The first threads have eight values each.
    __device__ __forceinline__ void keep(const Attention<bf16> &a, const Lot &lot, Span span, const float *laid) const {
        if (threadIdx.x < D / 8) {
            const float *x = laid + 8 * threadIdx.x;
            u32 v[4];
#pragma unroll
            for (int i = 0; i < 4; i++) v[i] = pack_bf16(x[2 * i], x[2 * i + 1]);
            newest[threadIdx.x] = make_uint4(v[0], v[1], v[2], v[3]);
            bool once = lot.first == lot.group * (a.heads / a.groups);
            uint4 *row = (uint4 *)(table + ((i64)to * a.groups + lot.group) * D);
            if (to >= 0 && once) row[threadIdx.x] = newest[threadIdx.x];
        }
        if (threadIdx.x == 0) mends() = to >= 0 && span.last >= 0 && to == a.k.row(span.last);
        __syncthreads();
    }

    __device__ __forceinline__ void mend(Span span, int tile, u32 keys) const {
        if (!keeps || tile != span.last / TILE || !mends()) return;
        int lane = threadIdx.x % 32;
        if (lane < D / 8) {
            uint4 v = newest[lane];
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(keys + place_of<D>(span.last % TILE, lane)),
                         "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                         : "memory");
        }
        __syncwarp();
    }
};

static __device__ __forceinline__ void prefetch(const float *w, int count) {
    int i = 32 * threadIdx.x;
    if (w && i < count) asm volatile("prefetch.global.L2 [%0];" ::"l"(w + i));
}

template <int D>
static __device__ __forceinline__ void attend_turned(const Attention<bf16> &a, const Rotation &rotation) {
    __shared__ uint4 newest[D / 8 + 1];
    prefetch(rotation.w, D);
    prefetch(rotation.key_w, D);
    attend_lots<D>(a, Turned<D>(rotation, newest));
}

#define TURNS                                                                                                \
    const int *position, const float *cos, const float *sin, bf16 *table, const int *slot, int rows, int heads0, \
        int heads1, int head_dim, int rot, int kind
#define ATTENDS(...) \
    const bf16 *v, const int *pages, __VA_ARGS__, int heads, int groups, int dk, int dv, PAGED, int stride, SCORES

#define TURNED_BODY(norm, w0, w1, ...)                                                            \
    {                                                                                             \
        auto a = paged(x0, table, v, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv); \
        SCORED(a);                                                                                \
        Turn turn = {position, cos, sin, head_dim, rot, kind, 0};                                 \
        attend_turned<DEPTH>(a, Rotation{turn, norm, x1, w0, w1, table, slot});                   \
    }

#define TURNED(suffix, outs, ...)                                                               \
    ATTENTION(attention_turned##suffix)(const float *x0, const float *x1, TURNS, ATTENDS(outs)) \
    TURNED_BODY((Norm{0.0f, 0}), nullptr, nullptr, __VA_ARGS__)

#define TURNED_N(suffix, outs, ...)                                                                            \
    ATTENTION(attention_turned_n##suffix)(const float *x0, const float *x1, const float *w0, const float *w1,  \
                                          TURNS, float eps, int plus_one, ATTENDS(outs))                       \
    TURNED_BODY((Norm{eps, plus_one}), w0, w1, __VA_ARGS__)

#if BS_WANTED(BS_ID_attention_turned)
TURNED(, F, y, nullptr)
#endif
#if BS_WANTED(BS_ID_attention_turned_q)
TURNED(_q, Q, nullptr, yq)
#endif
#if BS_WANTED(BS_ID_attention_turned_fq)
TURNED(_fq, FQ, y, yq)
#endif
#if BS_WANTED(BS_ID_attention_turned_n)
TURNED_N(, F, y, nullptr)
#endif
#if BS_WANTED(BS_ID_attention_turned_n_q)
TURNED_N(_q, Q, nullptr, yq)
#endif
#if BS_WANTED(BS_ID_attention_turned_n_fq)
TURNED_N(_fq, FQ, y, yq)
#endif
