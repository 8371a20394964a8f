/* set_rows, set_cols, take_row, add_row: whole rows, or columns of a table's; a block is a row. */
#include <part.h>

BS_KERNEL(set_rows, "in buffer<f32>, in buffer<i32>, inout state, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    const int32_t *slot = bs_ptr(&at);
    bs_cell *table = bs_ptr(&at);
    at++; /* rows: the grid's extent */
    int width = bs_i32(&at), to = slot[block->x];
    if (to >= 0) bs_cells_put(x + block->x * (size_t)width, width, table + (size_t)to * (size_t)width);
}

BS_KERNEL(set_cols, "in buffer<f32>, in buffer<i32>, inout state, i32, i32, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    bs_place place;
    place.slot = bs_ptr(&at);
    place.y = bs_ptr(&at);
    at++;
    int width = bs_i32(&at);
    place.pitch = bs_i32(&at);
    place.column = bs_i32(&at);
    ptrdiff_t to = bs_place_of(&place, block->x);
    if (to >= 0) bs_cells_put(x + block->x * (size_t)width, width, (bs_cell *)place.y + to);
}

BS_KERNEL(take_row, "in buffer<f32>, i32, out buffer<f32>, i32")
{
    BS_UNUSED(block);
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    size_t row = (size_t)bs_i32(&at) - 1;
    float *y = bs_ptr(&at);
    size_t width = (size_t)bs_i32(&at);
    memcpy(y, x + row * width, width * sizeof(float));
}

BS_KERNEL(add_row, "in buffer<f32>, in buffer<f32>, out buffer<f32>, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *a = bs_ptr(&at), *b = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++;
    int width = bs_i32(&at);
    size_t start = block->x * (size_t)width;
    for (int i = 0; i < width; i += VL) {
        int n = bs_min(VL, width - i);
        vf_store_n(y + start + i, vf_load_n(a + start + i, n) + vf_load_n(b + i, n), n);
    }
}
