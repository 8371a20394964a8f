/* in_panels: the rows of a matrix in panels of sixteen, a block each: see code_stored.h. */
#include <format.h>

#define HEADER (2 + 2 * BS_HAS_OFFSET)
#define CODES (BS_BLOCK_BYTES - HEADER)
#define SIGN (BS_FORMAT == BS_Q8_0 ? 128 : 0)

/* A block of sixteen rows, `pitch` bytes apart. */
static void lay_block(const uint8_t *rows, size_t pitch, uint8_t *to)
{
    for (int r = 0; r < BS_STORED_ROWS; r++) {
        const uint8_t *block = rows + (size_t)r * pitch;
        for (int i = 0; i < CODES; i++)
            to[i / 4 * 4 * BS_STORED_ROWS + 4 * r + i % 4] = block[HEADER + i] ^ SIGN;
        for (int i = 0; i < HEADER; i++)
            to[CODES * BS_STORED_ROWS + i / 2 * 2 * BS_STORED_ROWS + 2 * r + i % 2] = block[i];
    }
}

BS_KERNEL(BS_ENTRY(in_panels_, ), "in buffer<u8>, out buffer<u8>, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    const uint8_t *x = bs_ptr(&args);
    uint8_t *y = bs_ptr(&args);
    BS_UNUSED(bs_i32(&args));
    size_t pitch = (size_t)bs_i32(&args), from = block->x * BS_STORED_ROWS * pitch;
    for (size_t b = 0; b < pitch / BS_BLOCK_BYTES; b++)
        lay_block(x + from + b * BS_BLOCK_BYTES, pitch, y + from + b * BS_STORED_ROWS * BS_BLOCK_BYTES);
}
