/* take_part, silu_p and its like, concat, quantize_p: windows of rows; a block is a row. */
#include <part.h>
#include <quantize.h>

#define X "in buffer<f32>, "
#define Y "out buffer<f32>, "
#define WINDOW "i32, i32, i32"

BS_KERNEL(take_part, X Y "i32, i32, " WINDOW)
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++; /* rows: the grid's extent */
    int width = bs_i32(&at);
    bs_window_copy(x, bs_window_in(&at), block->x, 0, width, y + block->x * (size_t)width);
}

#define FUNCTION(entry, function)                                                \
    BS_KERNEL(entry, X Y "i32, i32, " WINDOW)                                    \
    {                                                                            \
        BS_UNUSED(grid);                                                         \
        BS_UNUSED(shared);                                                       \
        bs_cursor at = args;                                                     \
        const float *x = bs_ptr(&at);                                            \
        float *y = bs_ptr(&at);                                                  \
        at++;                                                                    \
        int width = bs_i32(&at);                                                 \
        bs_window window = bs_window_in(&at);                                    \
        y += block->x * (size_t)width;                                           \
        for (int i = 0; i < width;) {                                            \
            int run = bs_window_run(window, i, width), n = bs_min(VL, run);      \
            vf v = vf_load_n(x + bs_window_at(window, block->x, i), n);          \
            vf_store_n(y + i, function(v), n);                                   \
            i += n;                                                              \
        }                                                                        \
    }

FUNCTION(silu_p, vf_silu)
FUNCTION(sigmoid_p, vf_sigmoid)
FUNCTION(softplus_p, vf_softplus)
FUNCTION(gelu_tanh_p, vf_gelu_tanh)

BS_KERNEL(concat, X X Y "i32, i32, i32, i32, " WINDOW ", " WINDOW)
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *a = bs_ptr(&at), *b = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++;
    int units = bs_i32(&at), wa = bs_i32(&at), wb = bs_i32(&at);
    bs_window from_a = bs_window_in(&at), from_b = bs_window_in(&at);
    y += block->x * (size_t)units * (size_t)(wa + wb);
    for (int u = 0; u < units; u++, y += wa + wb) {
        bs_window_copy(a, from_a, block->x, u * wa, wa, y);
        bs_window_copy(b, from_b, block->x, u * wb, wb, y + wa);
    }
}

BS_KERNEL(quantize_p,
          X "out buffer<i8>, out buffer<f32>, out buffer<i32>, i32, i32, " WINDOW)
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    bs_quantized q = bs_quantized_out(&at);
    at++;
    int width = bs_i32(&at);
    bs_window window = bs_window_in(&at);
    size_t start = block->x * (size_t)width;
    for (int i = 0; i < width; i += BS_QBLOCK) {
        float dense[BS_QBLOCK];
        const float *values = bs_window_values(x, window, block->x, i, BS_QBLOCK, dense);
        bs_quantize_block(values, bs_quantized_at(q, start + (size_t)i));
    }
}
