/* Float activations times weight rows: dequantized on the way, or from a panel that already is.
 *
 * Lane l of a sum takes k = l, l + VL, ... in order; then the lanes fold pairwise.
 */
#ifndef BS_FLOAT_PRODUCT_H
#define BS_FLOAT_PRODUCT_H

#include <weights.h>

/* `rows` x `count` dot products, all at once. `packed`: weights are float32 panel rows. */
static BS_INLINE void bs_dots(const int rows, const int count, const int packed,
                              const float *const *x, const uint8_t *const *w, int k, size_t ahead,
                              bs_sums *sums, int column)
{
    vf acc[BS_TILE_ROWS][8]; /* fixed: a variable array would live in memory */
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < count; c++) acc[r][c] = (vf){0};
    BS_UNUSED(ahead);
    BS_UNUSED(packed);
#if !BS_DENSE
    for (int b = 0; !packed && b < k / 32; b += BS_BLOCKS) {
        size_t at = (size_t)(b / BS_BLOCKS) * BS_BLOCK_BYTES;
        bs_header header[8];
#pragma GCC unroll 8
        for (int c = 0; c < count; c++) {
            bs_header_load(w[c] + at, header + c);
            for (int line = 0; line < BS_BLOCK_BYTES; line += 64)
                __builtin_prefetch(w[c] + at + ahead + line, 0, 2);
        }
        for (int j = 0; j < BS_BLOCKS; j++)
#pragma GCC unroll 8
            for (int c = 0; c < count; c++) {
                vf values[32 / VL];
                bs_block_values(w[c] + at, header + c, j, values);
#pragma GCC unroll 8
                for (int i = 0; i < 32 / VL; i++)
#pragma GCC unroll 8
                    for (int r = 0; r < rows; r++)
                        acc[r][c] = vf_fma(vf_load(x[r] + 32 * (b + j) + VL * i), values[i], acc[r][c]);
            }
    }
    int from = packed ? 0 : k;
#else
    int from = 0;
#endif
    for (; from + VL <= k; from += VL) {
        vf v[BS_TILE_ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) v[r] = vf_load(x[r] + from);
#pragma GCC unroll 8
        for (int c = 0; c < count; c++) {
#if BS_DENSE
            vf values = bs_values(w[c], from, VL);
            __builtin_prefetch(w[c] + (size_t)from * BS_VALUE_BYTES + ahead, 0, 2);
#else
            vf values = vf_load((const float *)w[c] + from);
#endif
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) acc[r][c] = vf_fma(v[r], values, acc[r][c]);
        }
    }
#if BS_DENSE
    if (from < k)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
            for (int c = 0; c < count; c++)
                acc[r][c] = vf_fma(vf_load_n(x[r] + from, k - from), bs_values(w[c], from, k - from),
                                   acc[r][c]);
#endif
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int c = 0; c < count; c++) sums[r][column + c] = vf_sum(acc[r][c]);
}

#endif
