/* Tiles of rows of activations against a panel of codes, by vectors; the first of them packs the panel. */
#ifndef BS_CODE_TILES_H
#define BS_CODE_TILES_H

#include <code_panel.h>

#if BS_PACKS_ALONG && BS_BLOCKS == 1 && !BS_PANELS

/* A tile that packs as it goes. Shuffles and products are the work of different units of a core, which sees only
   so far ahead: so steps of both come in turn, and a unit's sixteen bytes of every row are dealt while those
   before are multiplied. Codes are put in the panel where tiles come that read them there. */

#define BS_UNIT_GROUPS (BS_FORMAT == BS_Q8_0 ? 4 : 8) /* of four codes that sixteen bytes of each row make */
#define BS_UNITS_OF (8 / BS_UNIT_GROUPS)

/* Group `g` of a unit. */
static BS_INLINE vow bs_group_of(const vow unit[4], int g)
{
#if BS_FORMAT == BS_Q8_0
    return unit[g] ^ (uint8_t)BS_I8_BIAS;
#else
    return g < 4 ? unit[g] & 15 : unit[g - 4] >> 4;
#endif
}

/* Where unit `u` of the block at `at` lies in each row. */
static BS_INLINE size_t bs_unit_at(size_t at, int u)
{
    return at + BS_BLOCK_BYTES - 16 * (size_t)(BS_UNITS_OF - u);
}

/* One step of a unit that is on its way, while group `g` of the one before is multiplied. */
static BS_INLINE void bs_unit_step(const uint8_t *const *w, size_t at, int g, vow unit[4])
{
    const int each = 16 / BS_UNIT_GROUPS / 2; /* gathers a step, which half of the steps are for */
    if (g < 4 / each)
        for (int i = 0; i < each; i++) unit[each * g + i] = vo_gather(w, at, each * g + i);
    if (g == 4 / each) vo_deal_words(unit);
    if (g == 4 / each + 1) vo_deal_pairs(unit);
}

/* Half of the headers at `at`, which are those of block `b`: to the panel when both halves are there. */
static BS_INLINE void bs_header_step(const bs_pass *p, size_t at, int b, int half, bs_headers headers[2])
{
    bs_headers_load(p->w + 8 * half, at, &headers[half]);
    if (!half) return;
    vof scale = vo_join(headers[0].scale, headers[1].scale);
    memcpy(p->panel.scale + (size_t)b * VO, &scale, sizeof scale);
#if BS_HAS_OFFSET
    vof offset = vo_join(headers[0].offset, headers[1].offset);
    memcpy(p->panel.offset + (size_t)b * VO, &offset, sizeof offset);
#endif
}

/* The products of block `b`, whose first unit is dealt, while its others are, and the first of block `later`. */
static BS_INLINE void bs_packing_block(const bs_pass *p, int b, int later, const int rows, const int keep,
                                       const int8_t *const *x, vow unit[4], voi *dot)
{
    vow next[4];
    bs_headers headers[2];
    size_t at = (size_t)(p->first + b) * BS_BLOCK_BYTES, then = (size_t)(p->first + later) * BS_BLOCK_BYTES;
    uint8_t *codes = p->panel.codes + (size_t)b * 32 * VO;
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++) {
        const int u = g / BS_UNIT_GROUPS + 1, step = g % BS_UNIT_GROUPS;
        vow four = bs_group_of(unit, step);
        if (keep) bs_put_four(codes, 0, g, four);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            int32_t word;
            memcpy(&word, x[r] + 32 * b + 4 * g, 4);
            dot[r] = vo_dot4(dot[r], four, word);
        }
        bs_unit_step(p->w, u < BS_UNITS_OF ? bs_unit_at(at, u) : bs_unit_at(then, 0), step, next);
        if (g >= 6) bs_header_step(p, then, later, g - 6, headers);
        if (step == BS_UNIT_GROUPS - 1) memcpy(unit, next, sizeof next);
    }
}

static BS_INLINE void bs_packing_rows(const bs_pass *p, const int rows, const int keep, const int8_t *const *x,
                                      bs_sums *sums, int column)
{
    vof acc[BS_CODE_ROWS];
    vow unit[4];
    bs_headers headers[2];
    size_t at = (size_t)p->first * BS_BLOCK_BYTES;
    bs_tile_begin(p, rows, sums, column, acc);
    vo_sixteen(p->w, bs_unit_at(at, 0), unit);
    for (int half = 0; half < 2; half++) bs_header_step(p, at, 0, half, headers);
    for (int b = 0; b < p->count; b++) {
        voi dot[BS_CODE_ROWS];
        bs_send(p->sender);
        bs_send(p->sender);
        bs_dots_begin(p, b, rows, 0, dot);
        bs_packing_block(p, b, bs_min(b + 1, p->count - 1), rows, keep, x, unit, dot);
        bs_tile_scale(p, b, rows, 0, dot, acc);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) memcpy(&sums[r][column], &acc[r], sizeof acc[r]);
}

#else

static BS_INLINE void bs_packing_rows(const bs_pass *p, const int rows, const int keep, const int8_t *const *x,
                                      bs_sums *sums, int column)
{
    BS_UNUSED(keep);
    bs_pack(p);
    bs_panel_rows(p, rows, 1, x, 0, sums, column);
}

#endif

/* The codes of the tile of `rows` rows from row `r` of a chunk of `end`, whose last one stands for those past it. */
static BS_INLINE void bs_tile_codes(const bs_pass *p, const bs_activations *a, size_t from, int r, int end,
                                    const int rows, const int8_t **x)
{
    for (int i = 0; i < rows; i++) {
        size_t row = bs_picked(a, from + (size_t)bs_min(r + i, end - 1));
        x[i] = a->codes + row * (size_t)a->pitch + 32 * (size_t)p->first;
    }
}

static BS_INLINE void bs_vector_tile(const bs_pass *p, const bs_activations *a, size_t from, int r, int end,
                                     const int rows, const int send, bs_sums *sums, int column)
{
    const int8_t *x[BS_CODE_ROWS];
    bs_tile_codes(p, a, from, r, end, rows, x);
    bs_panel_rows(p, rows, send, x, r, sums + r, column);
}

/* A pass over rows [from, from + rows) of the activations, by vectors; its first tile packs the weights. */
BS_STATIC void bs_vector_rows(const bs_pass *p, const bs_activations *a, size_t from, int rows, bs_sums *sums,
                           int column)
{
    const int half = BS_CODE_ROWS / 2;
    const int8_t *x[BS_CODE_ROWS];
    bs_tile_codes(p, a, from, 0, rows, BS_CODE_ROWS, x);
    if (rows <= half) bs_packing_rows(p, half, 0, x, sums, column);
    else if (rows <= BS_CODE_ROWS) bs_packing_rows(p, BS_CODE_ROWS, 0, x, sums, column);
    else bs_packing_rows(p, BS_CODE_ROWS, 1, x, sums, column);
    int r = BS_CODE_ROWS;
    for (; rows - r > half && r < BS_SEND_TILES * BS_CODE_ROWS; r += BS_CODE_ROWS)
        bs_vector_tile(p, a, from, r, rows, BS_CODE_ROWS, 1, sums, column);
    for (; rows - r > half; r += BS_CODE_ROWS)
        bs_vector_tile(p, a, from, r, rows, BS_CODE_ROWS, 0, sums, column);
    if (r < rows) bs_vector_tile(p, a, from, r, rows, half, 1, sums, column);
}

#endif
