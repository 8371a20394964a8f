// The entries of products of coded activations. The source that includes this says what they are called,
// BS_NAMED(family, ending), the most threads of a launch, BS_THREADS, what multiplies a job, BS_RUN, and
// what it takes beside: BS_BESIDE(matrices) among parameters, BS_BESIDE_ARGS among arguments.
#pragma once
#include "gemm.cuh"

// The entries, of which a module may hold one alone.
#define BS_ID_linear 1
#define BS_ID_linear_rows 2
#define BS_ID_linear_b 3
#define BS_ID_linear_b_rows 4
#define BS_ID_linear_add 5
#define BS_ID_linear_b_add 6
#define BS_ID_linear_cap 7
#define BS_ID_parts2 8
#define BS_ID_parts2_rows 9
#define BS_ID_parts2_b 10
#define BS_ID_parts2_b_rows 11
#define BS_ID_parts3 12
#define BS_ID_parts3_rows 13
#define BS_ID_parts3_b 14
#define BS_ID_parts3_b_rows 15
#define BS_ID_parts4 16
#define BS_ID_glu 17
#define BS_ID_glu_q 18
#define BS_ID_glu_fq 19

#define BS_SPREAD(...) __VA_ARGS__
#define BS_ROWS_K int rows, int k

#define BS_PRODUCT(family, ending, count, params, ...)                                  \
    BS_KERNEL(BS_THREADS)                                                               \
    BS_NAMED(family, ending)(const code_t *x, BS_SPREAD params BS_BESIDE(count)) {      \
        Job<count, false> job{x, rows, k, {__VA_ARGS__}, nullptr, nullptr, 0};          \
        BS_RUN(job BS_BESIDE_ARGS);                                                     \
    }

// How a part is given: plain, with a bias, into a table.
#define BS_TO_Y(w, y, n) {w, nullptr, y, nullptr, nullptr, n, nullptr, 0.f}
#define BS_TO_Y_B(w, bias, y, n) {w, bias, y, nullptr, nullptr, n, nullptr, 0.f}
#define BS_TO_ROWS(w, n) {w, nullptr, nullptr, table, slot, n, nullptr, 0.f}
#define BS_TO_ROWS_B(w, bias, n) {w, bias, nullptr, table, slot, n, nullptr, 0.f}

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

#if BS_WANTED(BS_ID_linear)
BS_PRODUCT(linear, , 1, (BS_W1, BS_Y1, BS_N1), BS_TO_Y(w, y, n))
#endif
#if BS_WANTED(BS_ID_linear_rows)
BS_PRODUCT(linear, _rows, 1, (BS_W1, BS_TABLE, BS_N1), BS_TO_ROWS(w, n))
#endif
#if BS_WANTED(BS_ID_linear_b)
BS_PRODUCT(linear, _b, 1, (BS_W1, BS_B1, BS_Y1, BS_N1), BS_TO_Y_B(w, bias, y, n))
#endif
#if BS_WANTED(BS_ID_linear_b_rows)
BS_PRODUCT(linear, _b_rows, 1, (BS_W1, BS_B1, BS_TABLE, BS_N1), BS_TO_ROWS_B(w, bias, n))
#endif
#if BS_WANTED(BS_ID_linear_add)
BS_PRODUCT(linear, _add, 1, (BS_W1, const float *add, BS_Y1, BS_N1), {w, nullptr, y, nullptr, nullptr, n, add, 0.f})
#endif
#if BS_WANTED(BS_ID_linear_b_add)
BS_PRODUCT(linear, _b_add, 1, (BS_W1, BS_B1, const float *add, BS_Y1, BS_N1),
           {w, bias, y, nullptr, nullptr, n, add, 0.f})
#endif
#if BS_WANTED(BS_ID_linear_cap)
BS_PRODUCT(linear, _cap, 1, (BS_W1, BS_Y1, BS_N1, float cap), {w, nullptr, y, nullptr, nullptr, n, nullptr, cap})
#endif
#if BS_WANTED(BS_ID_parts2)
BS_PRODUCT(parts2, , 2, (BS_W2, BS_Y2, BS_N2), BS_TO_Y(w0, y0, n0), BS_TO_Y(w1, y1, n1))
#endif
#if BS_WANTED(BS_ID_parts2_rows)
BS_PRODUCT(parts2, _rows, 2, (BS_W2, float *y0, BS_TABLE, BS_N2), BS_TO_Y(w0, y0, n0), BS_TO_ROWS(w1, n1))
#endif
#if BS_WANTED(BS_ID_parts2_b)
BS_PRODUCT(parts2, _b, 2, (BS_W2, BS_B2, BS_Y2, BS_N2), BS_TO_Y_B(w0, bias0, y0, n0),
           BS_TO_Y_B(w1, bias1, y1, n1))
#endif
#if BS_WANTED(BS_ID_parts2_b_rows)
BS_PRODUCT(parts2, _b_rows, 2, (BS_W2, BS_B2, float *y0, BS_TABLE, BS_N2), BS_TO_Y_B(w0, bias0, y0, n0),
           BS_TO_ROWS_B(w1, bias1, n1))
#endif
#if BS_WANTED(BS_ID_parts3)
BS_PRODUCT(parts3, , 3, (BS_W3, BS_Y3, BS_N3), BS_TO_Y(w0, y0, n0), BS_TO_Y(w1, y1, n1), BS_TO_Y(w2, y2, n2))
#endif
#if BS_WANTED(BS_ID_parts3_rows)
BS_PRODUCT(parts3, _rows, 3, (BS_W3, BS_Y2, BS_TABLE, BS_N3), BS_TO_Y(w0, y0, n0), BS_TO_Y(w1, y1, n1),
           BS_TO_ROWS(w2, n2))
#endif
#if BS_WANTED(BS_ID_parts3_b)
BS_PRODUCT(parts3, _b, 3, (BS_W3, BS_B3, BS_Y3, BS_N3), BS_TO_Y_B(w0, bias0, y0, n0),
           BS_TO_Y_B(w1, bias1, y1, n1), BS_TO_Y_B(w2, bias2, y2, n2))
#endif
#if BS_WANTED(BS_ID_parts3_b_rows)
BS_PRODUCT(parts3, _b_rows, 3, (BS_W3, BS_B3, BS_Y2, BS_TABLE, BS_N3), BS_TO_Y_B(w0, bias0, y0, n0),
           BS_TO_Y_B(w1, bias1, y1, n1), BS_TO_ROWS_B(w2, bias2, n2))
#endif
#if BS_WANTED(BS_ID_parts4)
BS_PRODUCT(parts4, , 4, (BS_W4, BS_Y4, BS_N4), BS_TO_Y(w0, y0, n0), BS_TO_Y(w1, y1, n1), BS_TO_Y(w2, y2, n2),
           BS_TO_Y(w3, y3, n3))
#endif
#define BS_GATED(ending, outs, y, codes)                                                               \
    BS_KERNEL(BS_THREADS)                                                                              \
    BS_NAMED(glu, ending)(const code_t *x, const u8 *wg, const u8 *wu, BS_SPREAD outs, BS_ROWS_K, int n, \
                          int act BS_BESIDE(2)) {                                                      \
        Job<2, true> job{                                                                              \
            x, rows, k, {BS_TO_Y(wg, nullptr, n), BS_TO_Y(wu, nullptr, n)}, y, codes, act};            \
        BS_RUN(job BS_BESIDE_ARGS);                                                                    \
    }

#if BS_WANTED(BS_ID_glu)
BS_GATED(, (float *y), y, nullptr)
#endif
#if BS_WANTED(BS_ID_glu_q)
BS_GATED(_q, (code_t *yq), nullptr, yq)
#endif
#if BS_WANTED(BS_ID_glu_fq)
BS_GATED(_fq, (float *y, code_t *yq), y, yq)
#endif
