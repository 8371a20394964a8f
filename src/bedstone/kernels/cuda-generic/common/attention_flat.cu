// attention_flat, attention_flat_split: over keys and values in buffers. A block is a row's heads of one
// group; the blocks of a cluster share their positions.
#include "attend_any.cuh"

#define ATTEND(a, rows) attend_any(a)
#include "attend_entry.cuh"

// Keys and values in buffers: those of group g begin `unit` values after those before.
static __device__ __forceinline__ Attention<float> flat(const float *q, const float *k, const float *v,
                                                        const int *position, Forms out, int heads, int groups,
                                                        int dk, int dv) {
    Attention<float> a = {};
    a.q = q;
    a.q_own = a.k_own = a.dk = dk;
    a.dv = dv;
    a.position = position;
    a.out = out;
    a.heads = heads;
    a.groups = groups;
    a.k.x = k;
    a.v.x = v;
    return a;
}

#define LAID(a)         \
    a.k.pitch = k_row;  \
    a.k.unit = k_unit;  \
    a.v.pitch = v_row;  \
    a.v.unit = v_unit
#define FLAT int k_row, int k_unit, int v_row, int v_unit

#define FLAT_KEYS(suffix, outs, ...)                                                                   \
    ATTENTION(attention_flat##suffix)                                                                  \
    (const float *q, const float *k, const float *v, const int *position, outs, SIZES, SCORES, FLAT) { \
        auto a = flat(q, k, v, position, Forms{__VA_ARGS__}, heads, groups, dk, dv);                   \
        SCORED(a);                                                                                     \
        LAID(a);                                                                                       \
        begin([&] { ATTEND(a, rows); });                                                               \
    }

#define FLAT_SPLIT(suffix, outs, ...)                                                                      \
    ATTENTION(attention_flat_split##suffix)                                                                \
    (const float *q, const float *k, const float *v, const cache_t *kt, WHERE, outs, SIZES, PAGED, SCORES, \
     FLAT, int own, int pitch, int column) {                                                               \
        auto a = flat(q, k, v, position, Forms{__VA_ARGS__}, heads, groups, dk, dv);                       \
        SCORED(a);                                                                                         \
        LAID(a);                                                                                           \
        a.k_own = own;                                                                                     \
        a.k_tail = Lines<cache_t>{kt + column, pages, page, pitch, 0};                                     \
        begin([&] { ATTEND(a, rows); });                                                                   \
    }

#if BS_WANTED(BS_ID_attention_flat)
FLAT_KEYS(, F, y, nullptr)
#endif
#if BS_WANTED(BS_ID_attention_flat_q)
FLAT_KEYS(_q, Q, nullptr, yq)
#endif
#if BS_WANTED(BS_ID_attention_flat_fq)
FLAT_KEYS(_fq, FQ, y, yq)
#endif
#if BS_WANTED(BS_ID_attention_flat_split)
FLAT_SPLIT(, F, y, nullptr)
#endif
#if BS_WANTED(BS_ID_attention_flat_split_q)
FLAT_SPLIT(_q, Q, nullptr, yq)
#endif
#if BS_WANTED(BS_ID_attention_flat_split_fq)
FLAT_SPLIT(_fq, FQ, y, yq)
#endif
