// The entries of products of coded activations. The source that includes this says what they are called,
// BS_NAMED(family, ending), the most threads of a launch, BS_THREADS, what multiplies a job, BS_RUN, and
// what it takes beside: BS_BESIDE(matrices) among parameters, BS_BESIDE_ARGS among arguments.
#pragma once
#include "gemm.cuh"

#define BS_SPREAD(...) __VA_ARGS__
#define BS_ROWS_K int rows, int k

#define BS_PRODUCT(family, ending, count, params, ...)                                  \
    BS_KERNEL(BS_THREADS)                                                               \
    BS_NAMED(family, ending)(const code_t *x, BS_SPREAD params BS_BESIDE(count)) {      \
        Job<count, false> job{x, rows, k, {__VA_ARGS__}, nullptr, nullptr, 0};          \
        BS_RUN(job BS_BESIDE_ARGS);                                                     \
    }

// How a part is given: plain, with a bias, into a table.
#define BS_TO_Y(w, y, n) {w, nullptr, y, nullptr, nullptr, n}
#define BS_TO_Y_B(w, bias, y, n) {w, bias, y, nullptr, nullptr, n}
#define BS_TO_ROWS(w, n) {w, nullptr, nullptr, table, slot, n}
#define BS_TO_ROWS_B(w, bias, n) {w, bias, nullptr, table, slot, n}

#define BS_W1 const u8 *w
#define BS_W2 const u8 *w0, const u8 *w1
#define BS_W3 BS_W2, const u8 *w2
#define BS_W4 BS_W3, const u8 *w3
#define BS_B1 const float *bias
#define BS_B2 const float *bias0, const float *bias1
#define BS_B3 BS_B2, const float *bias2
#define BS_Y1 float *y
#define BS_Y2 float *y0, float *y1
#define BS_Y3 BS_Y2, float *y2
#define BS_Y4 BS_Y3, float *y3
#define BS_TABLE cache_t *table, const int *slot
#define BS_N1 BS_ROWS_K, int n
#define BS_N2 BS_ROWS_K, int n0, int n1
#define BS_N3 BS_N2, int n2
#define BS_N4 BS_N3, int n3

BS_PRODUCT(linear, , 1, (BS_W1, BS_Y1, BS_N1), BS_TO_Y(w, y, n))
BS_PRODUCT(linear, _rows, 1, (BS_W1, BS_TABLE, BS_N1), BS_TO_ROWS(w, n))
BS_PRODUCT(linear, _b, 1, (BS_W1, BS_B1, BS_Y1, BS_N1), BS_TO_Y_B(w, bias, y, n))
BS_PRODUCT(linear, _b_rows, 1, (BS_W1, BS_B1, BS_TABLE, BS_N1), BS_TO_ROWS_B(w, bias, n))

BS_PRODUCT(parts2, , 2, (BS_W2, BS_Y2, BS_N2), BS_TO_Y(w0, y0, n0), BS_TO_Y(w1, y1, n1))
BS_PRODUCT(parts2, _rows, 2, (BS_W2, float *y0, BS_TABLE, BS_N2), BS_TO_Y(w0, y0, n0), BS_TO_ROWS(w1, n1))
BS_PRODUCT(parts2, _b, 2, (BS_W2, BS_B2, BS_Y2, BS_N2), BS_TO_Y_B(w0, bias0, y0, n0),
           BS_TO_Y_B(w1, bias1, y1, n1))
BS_PRODUCT(parts2, _b_rows, 2, (BS_W2, BS_B2, float *y0, BS_TABLE, BS_N2), BS_TO_Y_B(w0, bias0, y0, n0),
           BS_TO_ROWS_B(w1, bias1, n1))

BS_PRODUCT(parts3, , 3, (BS_W3, BS_Y3, BS_N3), BS_TO_Y(w0, y0, n0), BS_TO_Y(w1, y1, n1), BS_TO_Y(w2, y2, n2))
BS_PRODUCT(parts3, _rows, 3, (BS_W3, BS_Y2, BS_TABLE, BS_N3), BS_TO_Y(w0, y0, n0), BS_TO_Y(w1, y1, n1),
           BS_TO_ROWS(w2, n2))
BS_PRODUCT(parts3, _b, 3, (BS_W3, BS_B3, BS_Y3, BS_N3), BS_TO_Y_B(w0, bias0, y0, n0),
           BS_TO_Y_B(w1, bias1, y1, n1), BS_TO_Y_B(w2, bias2, y2, n2))
BS_PRODUCT(parts3, _b_rows, 3, (BS_W3, BS_B3, BS_Y2, BS_TABLE, BS_N3), BS_TO_Y_B(w0, bias0, y0, n0),
           BS_TO_Y_B(w1, bias1, y1, n1), BS_TO_ROWS_B(w2, bias2, n2))

BS_PRODUCT(parts4, , 4, (BS_W4, BS_Y4, BS_N4), BS_TO_Y(w0, y0, n0), BS_TO_Y(w1, y1, n1), BS_TO_Y(w2, y2, n2),
           BS_TO_Y(w3, y3, n3))

#define BS_GATED(ending, outs, y, codes)                                                               \
    BS_KERNEL(BS_THREADS)                                                                              \
    BS_NAMED(glu, ending)(const code_t *x, const u8 *wg, const u8 *wu, BS_SPREAD outs, BS_ROWS_K, int n, \
                          int act BS_BESIDE(2)) {                                                      \
        Job<2, true> job{                                                                              \
            x, rows, k, {BS_TO_Y(wg, nullptr, n), BS_TO_Y(wu, nullptr, n)}, y, codes, act};            \
        BS_RUN(job BS_BESIDE_ARGS);                                                                    \
    }

BS_GATED(, (float *y), y, nullptr)
BS_GATED(_q, (code_t *yq), nullptr, yq)
BS_GATED(_fq, (float *y, code_t *yq), y, yq)
