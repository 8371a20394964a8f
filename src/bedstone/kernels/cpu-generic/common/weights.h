/* What a matrix product is given: rows of activations, and a list of weight rows of one format. */
#ifndef BS_WEIGHTS_H
#define BS_WEIGHTS_H

#include <format.h>

BS_ALONG

#define BS_LIST 64         /* weight rows a call takes */
#define BS_CHUNK 256       /* activation rows a call takes, at most: see bs_chunk */
#define BS_FLOAT_CHUNK 128
#define BS_SPARE 8         /* rows past a chunk that a whole tile of rows may write */
#define BS_FEW_ROWS 3      /* for which a panel does not pay */
#define BS_FEW_CODE_ROWS 2

typedef struct {
    const float *x;        /* [rows, k], or null: then codes */
    const int8_t *codes;   /* [rows, k] */
    const float *scales;   /* [rows, k / 32] */
    const int32_t *sums;   /* [rows, k / 32] */
    const int32_t *pick;   /* which row each of a product's rows is; null: as they lie */
    int k, pitch;          /* values of a row, and from one row to the next */
    int rounded;           /* x may be rounded to bfloat16 */
} bs_activations;

/* How an entry reads activations. Those that may be rounded are rounded where that makes products faster. */
enum { BS_AS_FLOATS, BS_AS_CODES, BS_MAY_ROUND };

static BS_INLINE bs_activations bs_activations_in(bs_cursor *at, int form)
{
    bs_activations a = {0};
    if (form == BS_AS_CODES) {
        a.codes = bs_ptr(at);
        a.scales = bs_ptr(at);
        a.sums = bs_ptr(at);
    } else {
        a.x = bs_ptr(at);
        a.rounded = form == BS_MAY_ROUND;
    }
    return a;
}

static BS_INLINE size_t bs_picked(const bs_activations *a, size_t row)
{
    return a->pick ? (size_t)a->pick[row] : row;
}

/* Activation rows a call takes. Floats take fewer: their panel of weights needs the room. */
static BS_INLINE int bs_chunk(const bs_activations *a) { return a->x ? BS_FLOAT_CHUNK : BS_CHUNK; }

typedef struct {
    const uint8_t *row[BS_LIST]; /* past `count` the last row again: tiles are always whole */
    int count;
} bs_weight_rows;

typedef float bs_sums[BS_LIST]; /* one activation row's products */

#define BS_SCRATCH_BYTES (226 * 1024)
#define BS_SUMS_BYTES(rows) (((rows) + BS_SPARE) * sizeof(bs_sums))

/* What a product needs of the launch's scratch. A panel of weights lies behind a chunk's sums. */
typedef struct {
    const uint8_t *coming; /* what rows are on their way already, if they begin here; or anything */
    uint64_t unused[7];    /* sums begin a line */
    bs_sums sums[BS_CHUNK + BS_SPARE];
    uint8_t panel[BS_SCRATCH_BYTES - 64 - BS_SUMS_BYTES(BS_CHUNK)];
} bs_scratch;

#endif
