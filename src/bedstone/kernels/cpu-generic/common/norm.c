/* norm, add_norm, quantize: a block is a row. */
#include <norm.h>
#include <quantize.h>

/* One row of `x` [width], normed unit by unit; where no float row is wanted a block's worth of
   quantized values is made from a buffer of whole units. */
static void norm_row(const float *x, const float *w, bs_norm norm, int width, bs_forms out,
                     size_t row, float *scratch)
{
    float *y = out.y ? out.y + row * (size_t)width : scratch;
    for (int i = 0; i < width; i += norm.unit) bs_norm_unit(x + i, w, norm, y + i);
    if (out.q.codes) bs_quantize_row(y, width, bs_quantized_at(out.q, row * (size_t)width));
}

static BS_INLINE void norm_entry(const bs_arg *args, const bs_dim3 *block, void *shared, int add,
                                 int plain, int quantized)
{
    bs_cursor at = args;
    const float *x = bs_ptr(&at), *d = add ? bs_ptr(&at) : 0, *w = bs_ptr(&at);
    float *sum = add ? bs_ptr(&at) : 0;
    bs_forms out = bs_forms_out(&at, plain, quantized);
    at++; /* rows: the grid's extent */
    int width = bs_i32(&at);
    bs_norm norm;
    norm.unit = bs_i32(&at);
    norm.eps = bs_f32(&at);
    norm.plus_one = bs_i32(&at);
    size_t row = block->x, start = row * (size_t)width;
    const float *from = x + start;
    if (add) {
        for (int i = 0; i < width; i += VL) {
            int n = bs_min(VL, width - i);
            vf_store_n(sum + start + i, vf_load_n(from + i, n) + vf_load_n(d + start + i, n), n);
        }
        from = sum + start;
    }
    norm_row(from, w, norm, width, out, row, shared);
}

#define F "out buffer<f32>, "
#define Q "out buffer<i8>, out buffer<f32>, out buffer<i32>, "
#define SCALARS "i32, i32, i32, f32, i32"
#define NORM(suffix, outs, plain, quantized)                                                     \
    BS_KERNEL(norm##suffix, "in buffer<f32>, in buffer<f32>, " outs SCALARS)                     \
    {                                                                                            \
        BS_UNUSED(grid);                                                                         \
        norm_entry(args, block, shared, 0, plain, quantized);                                    \
    }                                                                                            \
    BS_KERNEL(add_norm##suffix,                                                                  \
              "in buffer<f32>, in buffer<f32>, in buffer<f32>, out buffer<f32>, " outs SCALARS)  \
    {                                                                                            \
        BS_UNUSED(grid);                                                                         \
        norm_entry(args, block, shared, 1, plain, quantized);                                    \
    }

NORM(, F, 1, 0)
NORM(_q, Q, 0, 1)
NORM(_fq, F Q, 1, 1)

BS_KERNEL(quantize,
          "in buffer<f32>, out buffer<i8>, out buffer<f32>, out buffer<i32>, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    bs_quantized q = bs_quantized_out(&at);
    at++;
    int width = bs_i32(&at);
    size_t start = block->x * (size_t)width;
    bs_quantize_row(x + start, width, bs_quantized_at(q, start));
}
