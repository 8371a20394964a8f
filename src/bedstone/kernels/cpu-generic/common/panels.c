/* in_panels: the rows of a matrix in panels of sixteen, a block each: see code_stored.h. */
#include <format.h>

#define HALVES (1 + BS_HAS_OFFSET)
#define WORDS ((BS_BLOCK_BYTES - 2 * HALVES) / 4)
#define SIGNS (BS_FORMAT == BS_Q8_0 ? 0x80808080u : 0u)

/* A block of sixteen rows, `pitch` bytes apart. */
static void lay_block(const uint8_t *rows, size_t pitch, uint8_t *to)
{
    uint8_t *halves = to + 4 * WORDS * BS_STORED_ROWS;
    for (int r = 0; r < BS_STORED_ROWS; r++) {
        const uint8_t *block = rows + (size_t)r * pitch, *codes = block + 2 * HALVES;
        for (int i = 0; i < WORDS; i++) {
            uint32_t word;
            memcpy(&word, codes + 4 * i, 4);
            word ^= SIGNS;
            memcpy(to + 4 * (BS_STORED_ROWS * i + r), &word, 4);
        }
        for (int i = 0; i < HALVES; i++) memcpy(halves + 2 * (BS_STORED_ROWS * i + r), block + 2 * i, 2);
    }
}

BS_KERNEL(BS_ENTRY(in_panels_, ), "in buffer<u8>, out buffer<u8>, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    const uint8_t *x = bs_ptr(&args);
    uint8_t *y = bs_ptr(&args);
    args++; /* rows: the grid's extent */
    size_t pitch = (size_t)bs_i32(&args), from = block->x * BS_STORED_ROWS * pitch;
    for (size_t b = 0; b < pitch / BS_BLOCK_BYTES; b++)
        lay_block(x + from + b * BS_BLOCK_BYTES, pitch, y + from + b * BS_STORED_ROWS * BS_BLOCK_BYTES);
}
