// attention, attention_gate: over a sequence's paged rows, as the source's ATTEND(a, rows) does once the launch
// ahead has ended, or RUN(a, rows) by itself.
#pragma once
#include "attend_entry.cuh"

#ifndef RUN
#define RUN(a, rows) begin([&] { ATTEND(a, rows); })
#endif
#ifndef BS_BESIDE
#define BS_BESIDE  // parameters that a source adds
#endif

#define PLAIN(suffix, outs, ...)                                                                \
    ATTENTION(attention##suffix)                                                                \
    (const float *q, const cache_t *k, const cache_t *v, WHERE, outs, SIZES, PAGED, int stride, \
     SCORES BS_BESIDE) {                                                                        \
        auto a = paged(q, k, v, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);    \
        SCORED(a);                                                                              \
        RUN(a, rows);                                                                           \
    }

#define GATED(suffix, outs, ...)                                                                       \
    ATTENTION(attention_gate##suffix)                                                                  \
    (const float *q, const cache_t *k, const cache_t *v, const float *gate, WHERE, outs, SIZES, PAGED, \
     int stride, SCORES, WINDOW(gate) BS_BESIDE) {                                                     \
        auto a = paged(q, k, v, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);           \
        SCORED(a);                                                                                     \
        a.gate = gate;                                                                                 \
        a.from_gate = WINDOW_OF(gate);                                                                 \
        RUN(a, rows);                                                                                  \
    }

#if BS_WANTED(BS_ID_attention)
PLAIN(, F, y, nullptr)
#endif
#if BS_WANTED(BS_ID_attention_q)
PLAIN(_q, Q, nullptr, yq)
#endif
#if BS_WANTED(BS_ID_attention_fq)
PLAIN(_fq, FQ, y, yq)
#endif
#if BS_WANTED(BS_ID_attention_gate)
GATED(, F, y, nullptr)
#endif
#if BS_WANTED(BS_ID_attention_gate_q)
GATED(_q, Q, nullptr, yq)
#endif
#if BS_WANTED(BS_ID_attention_gate_fq)
GATED(_fq, FQ, y, yq)
#endif
