/* Activations rounded to bfloat16 times weight rows of it.
 *
 * Lane l of a sum takes the pairs that begin at k = 2 l, 2 l + 2 VL, ... in order; then the lanes fold
 * pairwise. Past the end both factors are zero.
 */
#ifndef BS_PAIR_PRODUCT_H
#define BS_PAIR_PRODUCT_H

#include <pairs.h>
#include <weights.h>

#define BS_ROUNDED (BS_PAIR_PRODUCTS && BS_FORMAT == BS_BF16)

#if BS_ROUNDED

#define BS_PAIR_STEP (2 * VL)   /* values of a vector */
#define BS_PAIR_SPAN 1536       /* values a tile of rows goes through at a time: they stay in the nearest cache */
#define BS_PAIR_COLUMNS 4

typedef struct {
    vf sums[BS_TILE_ROWS][BS_LIST];                 /* of the spans so far, lane by lane */
    uint8_t rows[BS_TILE_ROWS][2 * BS_PAIR_SPAN];
} bs_pair_tile;

/* Values [0, count) of a row rounded, zeros up to a whole vector. */
static BS_INLINE void bs_round_row(const float *x, int count, uint8_t *to)
{
    int at = 0;
    for (; at + BS_PAIR_STEP <= count; at += BS_PAIR_STEP)
        vf_round_pairs(vf_load(x + at), vf_load(x + at + VL), to + 2 * at);
    if (at < count) {
        vf low = vf_load_n(x + at, bs_min(VL, count - at)), high = {0};
        if (count - at > VL) high = vf_load_n(x + at + VL, count - at - VL);
        vf_round_pairs(low, high, to + 2 * at);
    }
}

/* `rows` x `count` products of `values` of k, all at once: `acc` gains them. */
static BS_INLINE void bs_pair_dots(const int rows, const int count, const uint8_t *const *x,
                                   const uint8_t *const *w, int values, size_t ahead, vf acc[BS_TILE_ROWS][8])
{
    int at = 0;
    for (; at + BS_PAIR_STEP <= values; at += BS_PAIR_STEP)
#pragma GCC unroll 8
        for (int c = 0; c < count; c++) {
            if (ahead) __builtin_prefetch(w[c] + 2 * (size_t)at + ahead, 0, 2);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) acc[r][c] = vf_pairs(acc[r][c], x[r] + 2 * at, w[c] + 2 * at);
        }
    if (at == values) return;
#pragma GCC unroll 8
    for (int c = 0; c < count; c++) {
        uint8_t rest[2 * BS_PAIR_STEP] = {0};
        memcpy(rest, w[c] + 2 * at, 2 * (size_t)(values - at));
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) acc[r][c] = vf_pairs(acc[r][c], x[r] + 2 * at, rest);
    }
}

static void bs_pairs_few(const bs_activations *a, const bs_weight_rows *w, size_t from, int rows, size_t ahead,
                         bs_scratch *scratch)
{
    for (int r = 0; r < rows; r++) {
        const uint8_t *x = scratch->panel;
        bs_round_row(a->x + bs_picked(a, from + (size_t)r) * (size_t)a->pitch, a->k, scratch->panel);
        for (int c = 0; c < w->count; c += 8) {
            vf acc[BS_TILE_ROWS][8] = {{{0}}};
            bs_pair_dots(1, 8, &x, w->row + c, a->k, ahead, acc);
            vf_sum_four(acc[0], &scratch->sums[r][c]);
            vf_sum_four(acc[0] + 4, &scratch->sums[r][c + 4]);
        }
    }
}

/* A span of a tile of rows, rounded, against every weight row. */
static BS_INLINE void bs_pair_span(bs_pair_tile *tile, const bs_weight_rows *w, int first, int count, int last,
                                   bs_sums *sums)
{
    const uint8_t *x[BS_TILE_ROWS];
    for (int r = 0; r < BS_TILE_ROWS; r++) x[r] = tile->rows[r];
    for (int c = 0; c < w->count; c += BS_PAIR_COLUMNS) {
        const uint8_t *columns[BS_PAIR_COLUMNS];
        vf acc[BS_TILE_ROWS][8];
        for (int i = 0; i < BS_PAIR_COLUMNS; i++) columns[i] = w->row[c + i] + 2 * (size_t)first;
#pragma GCC unroll 8
        for (int r = 0; r < BS_TILE_ROWS; r++)
#pragma GCC unroll 4
            for (int i = 0; i < BS_PAIR_COLUMNS; i++) acc[r][i] = first ? tile->sums[r][c + i] : (vf){0};
        bs_pair_dots(BS_TILE_ROWS, BS_PAIR_COLUMNS, x, columns, count, 0, acc);
#pragma GCC unroll 8
        for (int r = 0; r < BS_TILE_ROWS; r++)
            if (last) vf_sum_four(acc[r], &sums[r][c]);
            else
#pragma GCC unroll 4
                for (int i = 0; i < BS_PAIR_COLUMNS; i++) tile->sums[r][c + i] = acc[r][i];
    }
}

static void bs_pairs_many(const bs_activations *a, const bs_weight_rows *w, size_t from, int rows,
                          bs_scratch *scratch)
{
    bs_pair_tile *tile = (bs_pair_tile *)scratch->panel;
    for (int r = 0; r < rows; r += BS_TILE_ROWS)
        for (int first = 0; first < a->k; first += BS_PAIR_SPAN) {
            int count = bs_min(BS_PAIR_SPAN, a->k - first);
            for (int i = 0; i < BS_TILE_ROWS; i++) {
                size_t row = bs_picked(a, from + (size_t)bs_min(r + i, rows - 1));
                bs_round_row(a->x + row * (size_t)a->pitch + first, count, tile->rows[i]);
            }
            bs_pair_span(tile, w, first, count, first + count == a->k, scratch->sums + r);
        }
}

#endif
#endif
