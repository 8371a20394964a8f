/* Rows of activations against weights that are stored in panels, read as they lie: two panels at a time. */
#ifndef BS_CODE_STORED_TILES_H
#define BS_CODE_STORED_TILES_H

#include <code_tiles.h>

#if BS_PANELS && VO == BS_STORED_ROWS

#define BS_DIRECT 1

/* Rows of a tile: by two panels twice as many sums as a core needs to be busy, which it holds in registers. */
#define BS_STORED_TILE 6
#define BS_STORED_LEAST 3

/* What one row brings of each block of a span, as a `bs_span` has it of all rows. Rows lie as far apart as it is
   long, so a tile finds all of them behind one address here too, and nothing is dealt. */
typedef struct bs_brought {
    float by[BS_SPAN];
#if BS_STARTS
    int32_t start[BS_SPAN];
#elif BS_HAS_OFFSET
    float total[BS_SPAN];
#endif
} bs_brought;

static void bs_stored_lay(const bs_activations *a, int first, int count, size_t from, int rows, bs_brought *out)
{
    for (int r = 0; r < bs_max(rows, BS_STORED_LEAST); r++) {
        size_t row = bs_picked(a, from + (size_t)bs_min(r, rows - 1));
        size_t place = row * ((size_t)a->pitch / 32) + (size_t)first;
        const float *by = a->scales + place;
        const int32_t *sums = a->sums + place;
        for (int b = 0; b < count; b++) {
            out[r].by[b] = by[b];
#if BS_STARTS
            out[r].start[b] = -BS_ZERO * sums[b];
#elif BS_HAS_OFFSET
            out[r].total[b] = by[b] * (float)sums[b];
#endif
        }
    }
}

/* The integer products of a block of two panels with each row: a row's four codes are read once for both. */
static BS_INLINE void bs_stored_dots(const bs_pass *p, int b, const int rows, const int8_t *const *x,
                                     voi dot[2][BS_STORED_TILE])
{
#pragma GCC unroll 8
    for (int turn = 0; turn < 8; turn++) {
        /* the two groups that share bytes follow each other, so that these need not be held */
        const int g = turn / 2 + turn % 2 * 4;
        vow codes[2];
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) codes[i] = bs_stored_group(p, i, b, g);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x[r] + 32 * b + 4 * g, 4);
#pragma GCC unroll 2
            for (int i = 0; i < 2; i++) dot[i][r] = vo_dot4(dot[i][r], codes[i], four);
        }
    }
}

/* Those products to the sums of a tile that begins at row `r0` of the chunk. */
static BS_INLINE void bs_stored_scale(const bs_pass *p, int b, const int rows, int r0,
                                      voi dot[2][BS_STORED_TILE], vof acc[2][BS_STORED_TILE])
{
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        vof scale, offset;
        bs_stored_halves(p, i, b, 0, (float *)&scale);
#if BS_HAS_OFFSET
        bs_stored_halves(p, i, b, 1, (float *)&offset);
#else
        BS_UNUSED(offset);
#endif
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            vof by = scale * p->rows[r0 + r].by[b];
            acc[i][r] = vo_fma(by, __builtin_convertvector(dot[i][r], vof), acc[i][r]);
#if BS_HAS_OFFSET
            acc[i][r] = vo_fma(offset, vo_set(p->rows[r0 + r].total[b]), acc[i][r]);
#endif
        }
    }
}

/* A pass over a tile whose codes begin at `x`. */
static BS_INLINE void bs_stored_tile(const bs_pass *p, const int rows, const int8_t *const *x, int r0,
                                     bs_sums *sums, int column)
{
    vof acc[2][BS_STORED_TILE];
    for (int i = 0; i < 2; i++) bs_tile_begin(p, rows, sums, column + i * VO, acc[i]);
    for (int b = 0; b < p->count; b++) {
        voi dot[2][BS_STORED_TILE];
        bs_send(p->sender);
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++)
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
#if BS_STARTS
                dot[i][r] = vo_seti(p->rows[r0 + r].start[b]);
#else
                dot[i][r] = (voi){0};
#endif
            }
        bs_stored_dots(p, b, rows, x, dot);
        bs_stored_scale(p, b, rows, r0, dot, acc);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) memcpy(&sums[r][column + i * VO], &acc[i][r], sizeof acc[i][r]);
}

static BS_INLINE void bs_stored_some(const bs_pass *p, int rows, const int8_t *const *x, int r0, bs_sums *sums,
                                     int column)
{
    switch (rows) {
    case 3: bs_stored_tile(p, 3, x, r0, sums, column); break;
    case 4: bs_stored_tile(p, 4, x, r0, sums, column); break;
    case 5: bs_stored_tile(p, 5, x, r0, sums, column); break;
    default: bs_stored_tile(p, BS_STORED_TILE, x, r0, sums, column); break;
    }
}

/* A pass over rows [from, from + rows) of the activations, in tiles as alike as can be; the last row stands for
   those past it. */
static void bs_stored_rows(const bs_pass *p, const bs_activations *a, size_t from, int rows, bs_sums *sums,
                           int column)
{
    int tiles = bs_ceil_div(rows, BS_STORED_TILE);
    for (int t = 0, r = 0; t < tiles; t++) {
        const int8_t *x[BS_STORED_TILE];
        int count = bs_max(bs_ceil_div(rows - r, tiles - t), BS_STORED_LEAST);
        bs_tile_codes(p, a, from, r, rows, count, x);
        bs_stored_some(p, count, x, r, sums + r, column);
        r += count;
    }
}

#else
#define BS_DIRECT 0
#endif
#endif
