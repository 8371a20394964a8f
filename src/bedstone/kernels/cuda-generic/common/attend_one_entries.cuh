// attention, attention_gate with keys and values of DEPTH bfloat16. A block is a row's heads of one
// group; the blocks of a cluster share their positions.
#pragma once
#include "attend_entry.cuh"
#include "attend_one.cuh"

static __device__ __forceinline__ void attend(const Attention<bf16> &a) {
    each_lot(a, [&](const Heads &heads) { attend_one_lot<DEPTH>(a, heads); });
}

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
    }

FORMS(, F, y, nullptr)
FORMS(_q, Q, nullptr, yq)
FORMS(_fq, FQ, y, yq)
