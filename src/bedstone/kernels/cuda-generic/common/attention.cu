// attention, attention_gate, attention_in, attention_in_split: over a sequence's paged rows. A block is
// a row's heads of one group; the blocks of a cluster share their positions.
#include "attend_any.cuh"
#include "attend_entry.cuh"

static __device__ __forceinline__ void attend(const Attention<cache_t> &a) { attend_any(a); }

#define FORMS(suffix, outs, ...)                                                                          \
    ATTENTION(attention##suffix)                                                                          \
    (const float *q, const cache_t *k, const cache_t *v, WHERE, outs, SIZES, PAGED, int stride, SCORES) { \
        auto a = paged(q, k, v, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);              \
        SCORED(a);                                                                                        \
        begin([&] { attend(a); });                                                                        \
    }                                                                                                     \
    ATTENTION(attention_gate##suffix)                                                                     \
    (const float *q, const cache_t *k, const cache_t *v, const float *gate, WHERE, outs, SIZES, PAGED,    \
     int stride, SCORES, WINDOW(gate)) {                                                                  \
        auto a = paged(q, k, v, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);              \
        SCORED(a);                                                                                        \
        a.gate = gate;                                                                                    \
        a.from_gate = WINDOW_OF(gate);                                                                    \
        begin([&] { attend(a); });                                                                        \
    }                                                                                                     \
    ATTENTION(attention_in##suffix)                                                                       \
    (const float *q, const cache_t *k, WHERE, outs, SIZES, PAGED, int stride, SCORES) {                   \
        auto a = paged(q, k, k, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);              \
        SCORED(a);                                                                                        \
        begin([&] { attend(a); });                                                                        \
    }                                                                                                     \
    ATTENTION(attention_in_split##suffix)                                                                 \
    (const float *q, const float *qt, const cache_t *k, WHERE, outs, SIZES, PAGED, int stride, SCORES,    \
     int own) {                                                                                           \
        auto a = paged(q, k, k, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);              \
        SCORED(a);                                                                                        \
        a.q_tail = qt;                                                                                    \
        a.q_own = own;                                                                                    \
        begin([&] { attend(a); });                                                                        \
    }

FORMS(, F, y, nullptr)
FORMS(_q, Q, nullptr, yq)
FORMS(_fq, FQ, y, yq)
