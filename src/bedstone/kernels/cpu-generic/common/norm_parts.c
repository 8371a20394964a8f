/* norm of a part or into columns, l2norm, gated_norm, add_norm_pre: a block is a row. */
#include <norm.h>
#include <part.h>
#include <quantize.h>

#define X "in buffer<f32>, "
#define Y "out buffer<f32>, "
#define TABLE "inout state, in buffer<i32>, "
#define Q "out buffer<i8>, out buffer<f32>, out buffer<i32>, "
#define NORM "i32, i32, i32, f32, i32"
#define WINDOW ", i32, i32, i32"

/* rows, width, then the norm's own. */
static BS_INLINE int read_norm(bs_cursor *at, bs_norm *norm)
{
    (*at)++; /* rows: the grid's extent */
    int width = bs_i32(at);
    norm->unit = bs_i32(at);
    norm->eps = bs_f32(at);
    norm->plus_one = bs_i32(at);
    return width;
}

/* --- a part, or into columns ------------------------------------------------------------------ */

static BS_INLINE void norm_moved(const bs_arg *args, size_t row, void *shared, int windowed, int to_columns)
{
    bs_cursor at = args;
    const float *x = bs_ptr(&at), *w = bs_ptr(&at);
    bs_place place = {0};
    place.y = bs_ptr(&at);
    if (to_columns) place.slot = bs_ptr(&at);
    bs_norm norm;
    int width = place.pitch = read_norm(&at, &norm);
    bs_window window = {width, width, width};
    if (windowed) window = bs_window_in(&at);
    if (to_columns) {
        place.pitch = bs_i32(&at);
        place.column = bs_i32(&at);
    }
    ptrdiff_t to = bs_place_of(&place, row);
    for (int i = 0; to >= 0 && i < width; i += norm.unit) {
        float *y = bs_place_make(&place, to + i, shared);
        bs_norm_unit(bs_window_values(x, window, row, i, norm.unit, y), w, norm, y);
        bs_place_put(&place, to + i, y, norm.unit);
    }
}

#define MOVED(entry, types, windowed, to_columns)                   \
    BS_KERNEL(entry, types)                                         \
    {                                                               \
        BS_UNUSED(grid);                                            \
        norm_moved(args, block->x, shared, windowed, to_columns);   \
    }

MOVED(norm_p, X X Y NORM WINDOW, 1, 0)
MOVED(norm_cols, X X TABLE NORM ", i32, i32", 0, 1)
MOVED(norm_p_cols, X X TABLE NORM WINDOW ", i32, i32", 1, 1)

BS_KERNEL(l2norm, X Y "i32, i32, i32, f32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++;
    int width = bs_i32(&at), unit = bs_i32(&at);
    float eps = bs_f32(&at);
    size_t start = block->x * (size_t)width;
    for (int i = 0; i < width; i += unit) bs_l2_unit(x + start + i, unit, eps, y + start + i);
}

/* --- results in any form ---------------------------------------------------------------------- */

static BS_INLINE void finish(bs_forms out, const float *y, int width, size_t row)
{
    if (out.q.codes) bs_quantize_row(y, width, bs_quantized_at(out.q, row * (size_t)width));
}

static BS_INLINE void gated_norm_row(const bs_arg *args, size_t row, void *shared, int plain,
                                     int quantized)
{
    bs_cursor at = args;
    const float *x = bs_ptr(&at), *w = bs_ptr(&at), *z = bs_ptr(&at);
    bs_forms out = bs_forms_out(&at, plain, quantized);
    bs_norm norm;
    int width = read_norm(&at, &norm);
    bs_window window = bs_window_in(&at);
    size_t start = row * (size_t)width;
    float *y = plain ? out.y + start : shared; /* a row of floats, though only codes are wanted */
    for (int i = 0; i < width; i += norm.unit) bs_norm_unit(x + start + i, w, norm, y + i);
    for (int i = 0; i < width;) {
        int n = bs_min(VL, bs_window_run(window, i, width));
        vf gate = vf_silu(vf_load_n(z + bs_window_at(window, row, i), n));
        vf_store_n(y + i, vf_load_n(y + i, n) * gate, n);
        i += n;
    }
    finish(out, y, width, row);
}

static BS_INLINE void add_norm_pre_row(const bs_arg *args, size_t row, void *shared, int plain,
                                       int quantized)
{
    bs_cursor at = args;
    const float *x = bs_ptr(&at), *d = bs_ptr(&at), *dw = bs_ptr(&at), *w = bs_ptr(&at);
    float *sum = bs_ptr(&at);
    bs_forms out = bs_forms_out(&at, plain, quantized);
    bs_norm norm, pre;
    int width = pre.unit = read_norm(&at, &norm);
    pre.eps = bs_f32(&at);
    pre.plus_one = bs_i32(&at);
    size_t start = row * (size_t)width;
    float *y = plain ? out.y + start : shared; /* a row of floats, though only codes are wanted */
    vf factor = bs_norm_factor(d + start, pre);
    for (int i = 0; i < width; i += VL) {
        int n = bs_min(VL, width - i);
        vf normed = bs_normed(d + start, dw, pre, factor, i, n);
        vf_store_n(sum + start + i, vf_load_n(x + start + i, n) + normed, n);
    }
    for (int i = 0; i < width; i += norm.unit) bs_norm_unit(sum + start + i, w, norm, y + i);
    finish(out, y, width, row);
}

#define ROW(entry, types, function, plain, quantized)                   \
    BS_KERNEL(entry, types)                                             \
    {                                                                   \
        BS_UNUSED(grid);                                                \
        function(args, block->x, shared, plain, quantized);             \
    }

#define FORMS(suffix, outs, plain, quantized)                                                     \
    ROW(gated_norm##suffix, X X X outs NORM WINDOW, gated_norm_row, plain, quantized)             \
    ROW(add_norm_pre##suffix, X X X X Y outs NORM ", f32, i32", add_norm_pre_row, plain, quantized)

FORMS(, Y, 1, 0)
FORMS(_q, Q, 0, 1)
FORMS(_fq, Y Q, 1, 1)
