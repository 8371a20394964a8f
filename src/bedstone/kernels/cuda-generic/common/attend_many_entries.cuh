// attention, attention_gate of many rows of one sequence, keys and values being DEPTH bfloat16. A block
// is ROWS rows of a head, those that see most first. A source includes what attends them before this.
#pragma once
#include "attend_entry.cuh"

#define BLOCK(rows) attend_many<DEPTH>(a, (int)(gridDim.x - 1 - blockIdx.x) * ROWS, rows)

#define FORMS(suffix, outs, ...)                                                                          \
    ATTENTION(attention##suffix)                                                                          \
    (const float *q, const cache_t *k, const cache_t *v, WHERE, outs, SIZES, PAGED, int stride, SCORES) { \
        auto a = paged(q, k, v, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);              \
        SCORED(a);                                                                                        \
        begin([&] { BLOCK(rows); });                                                                        \
    }                                                                                                     \
    ATTENTION(attention_gate##suffix)                                                                     \
    (const float *q, const cache_t *k, const cache_t *v, const float *gate, WHERE, outs, SIZES, PAGED,    \
     int stride, SCORES, WINDOW(gate)) {                                                                  \
        auto a = paged(q, k, v, position, PAGES, Forms{__VA_ARGS__}, heads, groups, dk, dv);              \
        SCORED(a);                                                                                        \
        a.gate = gate;                                                                                    \
        a.from_gate = WINDOW_OF(gate);                                                                    \
        begin([&] { BLOCK(rows); });                                                                        \
    }

FORMS(, F, y, nullptr)
FORMS(_q, Q, nullptr, yq)
FORMS(_fq, FQ, y, yq)
