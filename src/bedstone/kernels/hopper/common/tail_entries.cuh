// The entries of a source that has `run_with(tail, matrices, sizes, last product)`, whose blocks have THREADS that
// multiply and FETCHERS warps that send for weights.
#pragma once
#include "tail_job.cuh"
#include "weights.cuh"

#define TAIL(name) BS_KERNEL(THREADS + 32 * FETCHERS, 1) name
#define LAYER                                                                                                       \
    const float *attended, const u8 *wo, const float *x, const float *w_post, const u8 *wg, const u8 *wu, const u8 *wd, \
        const float *w_in
#define NORMS int act, float eps_post, int plus_one_post, float eps, int plus_one
#define BEHIND(...) \
    {attended, x, {w_post, eps_post, plus_one_post}, {w_in, eps, plus_one}, __VA_ARGS__, width, act}

TAIL(BS_ENTRY(tail_parts3_, _rows))(LAYER, const u8 *w0, const u8 *w1, const u8 *w2, float *sum, float *y0, float *y1, cache_t *table,
                                    const int *slot, int inner, int width, int ff, int n0, int n1, int n2, NORMS) {
    run_with(BEHIND(sum, table, slot), wo, wg, wu, wd, inner, ff, {{w0, w1, w2}, {y0, y1}, {n0, n1, n2}, width, 0, nullptr});
}

// Behind the last layer: its norm, and the head.
TAIL(BS_ENTRY(tail_linear_, ))(LAYER, const u8 *w, float *y, int inner, int width, int ff, int n, NORMS) {
    run_with(BEHIND(nullptr, nullptr, nullptr), wo, wg, wu, wd, inner, ff, {{w}, {y}, {n}, width, 0, nullptr});
}
