/* What a matrix product is given: rows of activations, and a list of weight rows of one format. */
#ifndef BS_WEIGHTS_H
#define BS_WEIGHTS_H

#include <format.h>

#define BS_LIST 64         /* weight rows a call takes */
#define BS_CHUNK 128       /* activation rows a call takes */
#define BS_SPARE 8         /* rows past a chunk that a whole tile of rows may write */
#define BS_PANEL_BYTES (192 * 1024 - 64)
#define BS_FEW_ROWS 3

typedef struct {
    const float *x;        /* [rows, k], or null: then codes */
    const int8_t *codes;   /* [rows, k] */
    const float *scales;   /* [rows, k / 32] */
    const int32_t *sums;   /* [rows, k / 32] */
    const int32_t *pick;   /* which row each of a product's rows is; null: as they lie */
    int k, pitch;          /* values of a row, and from one row to the next */
} bs_activations;

static BS_INLINE bs_activations bs_activations_in(bs_cursor *at, int quantized)
{
    bs_activations a = {0};
    if (quantized) {
        a.codes = bs_ptr(at);
        a.scales = bs_ptr(at);
        a.sums = bs_ptr(at);
    } else {
        a.x = bs_ptr(at);
    }
    return a;
}

static BS_INLINE size_t bs_picked(const bs_activations *a, size_t row)
{
    return a->pick ? (size_t)a->pick[row] : row;
}

typedef struct {
    const uint8_t *row[BS_LIST]; /* past `count` the last row again: tiles are always whole */
    int count;
} bs_weight_rows;

typedef float bs_sums[BS_LIST]; /* one activation row's products */

#endif
