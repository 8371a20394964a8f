/* The values that an attention multiplies, rounded to bfloat16: by pairs of a key's, or of positions'. */
#ifndef BS_ATTEND_PAIRS_H
#define BS_ATTEND_PAIRS_H

#include <table.h>

#define UNIT 2
#define STEP (2 * VL)

static BS_INLINE vf product(vf acc, vf a, vf b)
{
    return _mm512_dpbf16_ps(acc, (__m512bh)a, (__m512bh)b);
}

/* STEP values or less of a row, zeros behind them. */
static BS_INLINE vf round_values(const float *x, int n)
{
    vf low = vf_load_n(x, bs_min(n, VL)), high = {0};
    if (n > VL) high = vf_load_n(x + VL, n - VL);
    return (vf)_mm512_cvtne2ps_pbh(high, low);
}

/* The same of a row of cells, which are such values already. */
static BS_INLINE vf find_cells(const uint8_t *row, size_t at, int n)
{
    const uint8_t *p = row + 2 * at;
    if (n == STEP) return (vf)_mm512_loadu_si512(p);
    return (vf)_mm512_maskz_loadu_epi16((__mmask32)((1ull << n) - 1), p);
}

/* Vector [c][j] has the c-th eight of rows j, j + 4, j + 8, j + 12 side by side. */
static BS_INLINE void find_keys(const uint8_t *const rows[VL], const int cells, size_t at, int n, vf keys[VL / 4][4])
{
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        vf some[4];
#pragma GCC unroll 4
        for (int l = 0; l < 4; l++) {
            const uint8_t *row = rows[4 * l + j];
            some[l] = cells ? find_cells(row, at, n) : round_values((const float *)row + at, n);
        }
        vf_deal_quads(some);
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) keys[c][j] = some[c];
    }
}

static BS_INLINE int query_lies(int width) { return width == 0; }

static BS_INLINE void lay_query(const float *x, int width, float *to)
{
    for (int d = 0; d < width; d += STEP, to += VL) vf_store(to, round_values(x + d, bs_min(STEP, width - d)));
}

/* Weights [begin, end), in place: that of position t is the t-th half of a float. */
static BS_INLINE void lay_weights(float *weights, int begin, int end)
{
    for (int t = begin / STEP * STEP; t < end; t += STEP)
        vf_store(weights + t / 2, round_values(weights + t, STEP));
}

/* Those of two positions, in every lane. */
static BS_INLINE vf weight_of(const float *weights, int t)
{
    return (vf)_mm512_castps_si512(_mm512_broadcastss_ps(_mm_load_ss(weights + t / 2)));
}

/* `n` values of two positions, side by side. */
static BS_INLINE vf value_of(const uint8_t *const *rows, const int cells, int t, size_t at, int n)
{
    const __m512i sides = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                           22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i both;
    if (cells) {
        __mmask16 some = (__mmask16)((1u << n) - 1);
        __m256i low = _mm256_maskz_loadu_epi16(some, rows[t] + 2 * at);
        both = _mm512_inserti64x4(_mm512_castsi256_si512(low), _mm256_maskz_loadu_epi16(some, rows[t + 1] + 2 * at), 1);
    } else {
        const float *first = (const float *)rows[t] + at, *second = (const float *)rows[t + 1] + at;
        both = (__m512i)_mm512_cvtne2ps_pbh(vf_load_n(second, n), vf_load_n(first, n));
    }
    return (vf)_mm512_permutexvar_epi16(sides, both);
}

#endif
