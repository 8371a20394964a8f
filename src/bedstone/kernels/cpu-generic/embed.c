/* embed: the row of a token, as float32; a block is a row. */
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

BS_KERNEL(BS_ENTRY(embed_, ), "in buffer<i32>, in buffer<" BS_W ">, out buffer<f32>, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const int32_t *token = bs_ptr(&at);
    const uint8_t *w = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++;
    int width = bs_i32(&at);
    embed_row(w + (size_t)token[block->x] * bs_row_bytes(width), width,
              y + block->x * (size_t)width);
}
