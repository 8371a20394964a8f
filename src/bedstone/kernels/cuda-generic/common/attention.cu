// attention, attention_gate, attention_in, attention_in_split: over a sequence's paged rows. A block is
// a row's heads of one group; the blocks of a cluster share their positions.
#include "attend_any.cuh"

#define ATTEND(a, rows) attend_any(a)
#include "attend_paged.cuh"

#define IN_KEYS(suffix, outs, ...)                                                           \
    ATTENTION(attention_in##suffix)                                                          \
    (const float *q, const cache_t *k, WHERE, outs, SIZES, PAGED, int stride, SCORES) {      \
        auto a = paged(q, k, k, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv); \
        SCORED(a);                                                                           \
        begin([&] { ATTEND(a, rows); });                                                     \
    }

#define SPLIT(suffix, outs, ...)                                                                       \
    ATTENTION(attention_in_split##suffix)                                                              \
    (const float *q, const float *qt, const cache_t *k, WHERE, outs, SIZES, PAGED, int stride, SCORES, \
     int own) {                                                                                        \
        auto a = paged(q, k, k, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);           \
        SCORED(a);                                                                                     \
        a.q_tail = qt;                                                                                 \
        a.q_own = own;                                                                                 \
        begin([&] { ATTEND(a, rows); });                                                               \
    }

#if BS_WANTED(BS_ID_attention_in)
IN_KEYS(, F, y, nullptr)
#endif
#if BS_WANTED(BS_ID_attention_in_q)
IN_KEYS(_q, Q, nullptr, yq)
#endif
#if BS_WANTED(BS_ID_attention_in_fq)
IN_KEYS(_fq, FQ, y, yq)
#endif
#if BS_WANTED(BS_ID_attention_in_split)
SPLIT(, F, y, nullptr)
#endif
#if BS_WANTED(BS_ID_attention_in_split_q)
SPLIT(_q, Q, nullptr, yq)
#endif
#if BS_WANTED(BS_ID_attention_in_split_fq)
SPLIT(_fq, FQ, y, yq)
#endif
