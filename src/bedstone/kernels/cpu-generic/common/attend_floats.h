/* The values that an attention multiplies, as they are. */
#ifndef BS_ATTEND_FLOATS_H
#define BS_ATTEND_FLOATS_H

#include <table.h>

#define UNIT 1  /* positions whose values are multiplied at once */
#define STEP VL /* values of a key that are dealt to vectors at once */

static BS_INLINE vf product(vf acc, vf a, vf b) { return vf_fma(a, b, acc); }

/* `n` values of a row from `at` on. */
static BS_INLINE vf find_values(const uint8_t *row, const int cells, size_t at, int n)
{
    return cells ? bs_cells_load((const bs_cell *)row + at, n) : vf_load_n((const float *)row + at, n);
}

/* `n` values, at most STEP, of each of VL rows: vector [c][j] has the c-th four of rows j, j + 4, j + 8 ...
   side by side, zeros behind the last value. */
static BS_INLINE void find_keys(const uint8_t *const rows[VL], const int cells, size_t at, int n, vf keys[VL / 4][4])
{
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        vf some[VL / 4];
#pragma GCC unroll 4
        for (int l = 0; l < VL / 4; l++) some[l] = find_values(rows[4 * l + j], cells, at, n);
        vf_deal_quads(some);
#pragma GCC unroll 4
        for (int c = 0; c < VL / 4; c++) keys[c][j] = some[c];
    }
}

/* A query needs no other form than it has, if nothing is to lie behind its values. */
static BS_INLINE int query_lies(int width) { return width % STEP == 0; }

static BS_INLINE void lay_query(const float *x, int width, float *to)
{
    memcpy(to, x, sizeof(float) * (size_t)width);
    memset(to + width, 0, sizeof(float) * (size_t)(-width & (STEP - 1)));
}

static BS_INLINE void lay_weights(float *weights, int begin, int end)
{
    BS_UNUSED(weights);
    BS_UNUSED(begin);
    BS_UNUSED(end);
}

static BS_INLINE vf weight_of(const float *weights, int t) { return vf_set(weights[t]); }

/* `n` values of position t. */
static BS_INLINE vf value_of(const uint8_t *const *rows, const int cells, int t, size_t at, int n)
{
    return find_values(rows[t], cells, at, n);
}

#endif
