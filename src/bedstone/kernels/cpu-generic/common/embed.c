/* embed, embed_scaled: the row of a token, as float32; a block is a row. */
#include <format.h>

static void embed_row(const uint8_t *w, int width, float *y)
{
#if BS_DENSE
    for (int i = 0; i < width; i += VL) {
        int n = bs_min(VL, width - i);
        vf_store_n(y + i, bs_values(w, i, n), n);
    }
#else
    bs_unpack_row(w, width, y);
#endif
}

static BS_INLINE void embed_entry(const bs_arg *args, size_t row, int scaled)
{
    bs_cursor at = args;
    const int32_t *token = bs_ptr(&at);
    const uint8_t *w = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++; /* rows: the grid's extent */
    int width = bs_i32(&at);
    y += row * (size_t)width;
    embed_row(w + (size_t)token[row] * bs_row_bytes(width), width, y);
    if (!scaled) return;
    float by = bs_f32(&at);
    for (int i = 0; i < width; i += VL) {
        int n = bs_min(VL, width - i);
        vf_store_n(y + i, vf_load_n(y + i, n) * by, n);
    }
}

#define EMBED(family, scalars, scaled)                                                         \
    BS_KERNEL(BS_ENTRY(family, ), "in buffer<i32>, in buffer<" BS_W ">, out buffer<f32>, "     \
                                  scalars)                                                     \
    {                                                                                          \
        BS_UNUSED(grid);                                                                       \
        BS_UNUSED(shared);                                                                     \
        embed_entry(args, block->x, scaled);                                                   \
    }

EMBED(embed_, "i32, i32", 0)
EMBED(embed_scaled_, "i32, i32, f32", 1)
