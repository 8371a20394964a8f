/* Weights that are stored in panels of sixteen rows: block b of all of them lies behind their blocks before it.
 *
 * Of a block first come codes, four bytes of each row at a time, which of q8_0 are 128 more than the numbers
 * they stand for; then every row's scale; then every row's offset. A row takes as many bytes as it does alone.
 */
#ifndef BS_CODE_STORED_H
#define BS_CODE_STORED_H

static BS_INLINE const uint8_t *bs_stored_block(const bs_pass *p, int panel, int b)
{
    return p->stored[panel] + (size_t)(p->first + b) * BS_STORED_ROWS * BS_BLOCK_BYTES;
}

/* Group `g` of four codes of VO rows. */
static BS_INLINE vow bs_stored_group(const bs_pass *p, int panel, int b, int g)
{
    const uint8_t *words = bs_stored_block(p, panel, b) + 4 * p->lane;
#if BS_FORMAT == BS_Q8_0
    return vo_words(words + 4 * BS_STORED_ROWS * g) ^ (uint8_t)(128 - BS_I8_BIAS);
#else
    vow both = vo_words(words + 4 * BS_STORED_ROWS * (g % 4));
    return g < 4 ? both & 15 : both >> 4;
#endif
}

/* What every row has one of in a block, to VO floats: scales, or the offsets behind them. */
static BS_INLINE void bs_stored_halves(const bs_pass *p, int panel, int b, const int offsets, float *to)
{
    const uint8_t *scales = bs_stored_block(p, panel, b) + BS_STORED_ROWS * (BS_BLOCK_BYTES - 2 - 2 * BS_HAS_OFFSET);
    for (int i = 0; i < VO; i += VL)
        vf_store(to + i, vf_from_f16(scales + 2 * (BS_STORED_ROWS * offsets + p->lane + i)));
}

/* Lays all blocks of a pass as a panel. */
BS_STATIC void bs_pack(const bs_pass *p)
{
    for (int b = 0; b < p->count; b++) {
        bs_send(p->sender);
        bs_stored_halves(p, 0, b, 0, p->panel.scale + (size_t)b * VO);
#if BS_HAS_OFFSET
        bs_stored_halves(p, 0, b, 1, p->panel.offset + (size_t)b * VO);
#endif
        for (int g = 0; g < 8; g++) bs_put_four(p->panel.codes, b, g, bs_stored_group(p, 0, b, g));
    }
}

#endif
