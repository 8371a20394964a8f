/* Int8 activations times a panel of weight rows of a quantized format: many rows at a time.
 *
 * VO weight rows are laid side by side, as integer products take them, and meet tiles of activation rows.
 */
#ifndef BS_CODE_PANEL_H
#define BS_CODE_PANEL_H

#include <code_product.h>

/* A panel of codes: VO weight rows side by side, fours of k as vo_dot4 takes them, and their scales. */
typedef struct {
    uint8_t *codes;
    float *scale;           /* [k / 32][VO] */
#if BS_HAS_OFFSET
    float *offset;          /* [k / 32][VO] */
#elif BS_TWO_SCALES
    int32_t *scales;        /* [k / 16][VO] */
#endif
} bs_code_panel;

#define BS_PANEL_ROW (32 * VO + 4 * VO * (1 + BS_HAS_OFFSET + 2 * BS_TWO_SCALES)) /* bytes a 32 */

static BS_INLINE bs_code_panel bs_panel_at(void *memory, int blocks)
{
    bs_code_panel panel;
    panel.codes = memory;
    panel.scale = (float *)(panel.codes + (size_t)blocks * 32 * VO);
#if BS_HAS_OFFSET
    panel.offset = panel.scale + (size_t)blocks * VO;
#elif BS_TWO_SCALES
    panel.scales = (int32_t *)(panel.scale + (size_t)blocks * VO);
#endif
    return panel;
}

#define BS_SEND_TILES 2 /* tiles of rows during which weights are sent for */

/* Weights to send for, a few lines a step: a core has only so many on their way, and one that asks for
   more at once waits. */
typedef struct {
    const uint8_t *const *w; /* `rows` rows that are still to be begun */
    int rows;
    size_t skip, bytes;      /* of each row, what lies before and how much */
    const uint8_t *at, *end; /* of the row that is begun */
    int each;                /* lines of a step */
    bs_coming *along;        /* of launches to come, or null */
} bs_sender;

#define BS_SEND_ALONG 2 /* lines of a step */

static BS_INLINE void bs_send_along(bs_coming *c)
{
    if (c->now.at >= c->now.end) {
        if (c->next == c->last) return;
        c->now = *c->next++;
    }
    for (int i = 0; i < BS_SEND_ALONG; i++, c->now.at += 64) __builtin_prefetch(c->now.at, 0, 2);
}

static BS_INLINE void bs_send(bs_sender *s)
{
    if (s->along) bs_send_along(s->along);
    if (s->at >= s->end) {
        if (!s->rows) return;
        s->rows--;
        s->at = *s->w++ + s->skip;
        s->end = s->at + s->bytes;
    }
    const uint8_t *to = s->at + 64 * s->each;
    for (; s->at < to; s->at += 64) __builtin_prefetch(s->at, 0, 2);
}

static BS_INLINE void bs_put_four(uint8_t *codes, int block, int group, vow four)
{
    memcpy(codes + ((size_t)block * 8 + (size_t)group) * 4 * VO, &four, sizeof four);
}

#if !BS_PANELS

/* The headers of VO rows at one place, to the first of their blocks in a panel. */
static BS_INLINE void bs_lay_headers(const uint8_t *const *w, size_t at, size_t block, bs_code_panel panel)
{
    for (int lane = 0; lane < VO; lane += 8) {
        bs_headers headers;
        bs_headers_load(w + lane, at, &headers);
        for (int j = 0; j < BS_BLOCKS; j++) {
            size_t place = (block + (size_t)j) * VO + (size_t)lane;
            v8f scale = bs_scale(&headers, j);
            memcpy(panel.scale + place, &scale, sizeof scale);
#if BS_HAS_OFFSET
            v8f offset = bs_offset(&headers, j);
            memcpy(panel.offset + place, &offset, sizeof offset);
#elif BS_TWO_SCALES
            for (int half = 0; half < 2; half++) {
                v8i six = v8_from_i8(headers.scales[2 * j + half]);
                memcpy(panel.scales + 2 * place - lane + half * VO, &six, sizeof six);
            }
#endif
        }
    }
}

/* The codes behind a header of VO rows, sixteen bytes of each at a time. */
static BS_INLINE void bs_lay_codes(const uint8_t *const *w, size_t at, uint8_t *codes)
{
    vow four[4];
#if BS_FORMAT == BS_Q4_0 || BS_FORMAT == BS_Q4_1
    vo_sixteen(w, at + BS_BLOCK_BYTES - 16, four);
    for (int g = 0; g < 4; g++) {
        bs_put_four(codes, 0, g, four[g] & 15);
        bs_put_four(codes, 0, 4 + g, four[g] >> 4);
    }
#elif BS_FORMAT == BS_Q8_0
    for (int half = 0; half < 2; half++) {
        vo_sixteen(w, at + 2 + 16 * (size_t)half, four);
        for (int g = 0; g < 4; g++) bs_put_four(codes, 0, 4 * half + g, four[g] ^ (uint8_t)BS_I8_BIAS);
    }
#elif BS_FORMAT == BS_Q4_K
    for (int part = 0; part < 8; part++) {
        vo_sixteen(w, at + 16 + 16 * (size_t)part, four);
        for (int g = 0; g < 4; g++) {
            bs_put_four(codes, part & 6, 4 * (part & 1) + g, four[g] & 15);
            bs_put_four(codes, (part & 6) + 1, 4 * (part & 1) + g, four[g] >> 4);
        }
    }
#else
    for (int part = 0; part < 8; part++) {
        /* sixteen of each 64 bytes of nibbles, and the sixteen bytes that hold their two more bits */
        int half = part >> 2, quarter = (part >> 1) & 1, place = part & 1;
        vow more[4];
        vo_sixteen(w, at + 16 * (size_t)part, four);
        vo_sixteen(w, at + 128 + 32 * (size_t)half + 16 * (size_t)place, more);
        for (int g = 0; g < 4; g++) {
            vow bits = more[g] >> (uint8_t)(2 * quarter);
            bs_put_four(codes, 4 * half + quarter, 4 * place + g, (four[g] & 15) | ((bits & 3) << 4));
            bs_put_four(codes, 4 * half + quarter + 2, 4 * place + g, (four[g] >> 4) | (bits & 0x30));
        }
    }
#endif
}

#endif

static BS_INLINE vof vo_set(float x) { return x - (vof){0}; }
static BS_INLINE voi vo_seti(int32_t x) { return x - (voi){0}; }

static BS_INLINE vof vo_load(const float *p)
{
    vof v;
    memcpy(&v, p, sizeof v);
    return v;
}

static BS_INLINE voi vo_loadi(const int32_t *p)
{
    voi v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* --- what rows bring --------------------------------------------------------------------------- */

#define BS_SPAN 32 /* blocks of k that are gone through at a time: whole headers */
#define BS_LAID (BS_CHUNK + 16) /* values from one block's rows to the next's: no power of two */
#define BS_STARTS (BS_ZERO ? 1 + BS_TWO_SCALES : 0)

/* Of each block of a span every row's scale, what the integer sums of the block, or of its halves, start
   from so that the codes' zero is taken off, and what multiplies an offset: rows side by side, so that a
   tile of them finds all it needs behind one address. */
typedef struct {
    float by[BS_SPAN][BS_LAID];
#if BS_STARTS
    int32_t start[BS_SPAN][BS_STARTS][BS_LAID];
#endif
#if BS_HAS_OFFSET
    float total[BS_SPAN][BS_LAID];
#endif
} bs_span;

/* Words [0, count) of VL rows, each from its place on, to columns of `out`. */
static BS_INLINE void bs_lay(const void *from, const size_t place[VL], int count, void *out, int stride)
{
    const float *rows[VL];
    float *to = out;
    int at = 0;
    for (int i = 0; i < VL; i++) rows[i] = (const float *)from + place[i];
    for (; at + VL <= count; at += VL) vf_transpose(rows, at, to + at * stride, stride);
    for (; at < count; at++)
        for (int i = 0; i < VL; i++) memcpy(to + at * stride + i, rows[i] + at, sizeof *to);
}

#if BS_TWO_SCALES

static BS_INLINE int32_t bs_sixteen(const int8_t *x)
{
    int32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += x[i];
    return sum;
}

#endif

/* The starts, or the multipliers of an offset, of VL rows: all but what is copied as it lies. */
static BS_INLINE void bs_lay_made(const bs_activations *a, const size_t place[VL], int count, int r,
                                  bs_span *span)
{
#if BS_TWO_SCALES
    for (int i = 0; i < VL; i++)
        for (int j = 0; j < 2 * count; j++)
            span->start[j / 2][j % 2][r + i] = -BS_ZERO * bs_sixteen(a->codes + 32 * place[i] + 16 * j);
#elif BS_STARTS
    bs_lay(a->sums, place, count, &span->start[0][0][r], BS_LAID);
    for (int b = 0; b < count; b++)
        for (int i = 0; i < VL; i++) span->start[b][0][r + i] *= -BS_ZERO;
#elif BS_HAS_OFFSET
    int32_t sums[BS_SPAN][VL];
    bs_lay(a->sums, place, count, sums, VL);
    for (int b = 0; b < count; b++)
        for (int i = 0; i < VL; i++) span->total[b][r + i] = span->by[b][r + i] * (float)sums[b][i];
#else
    (void)a, (void)place, (void)count, (void)r, (void)span;
#endif
}

/* Blocks [first, first + count) of rows [from, from + rows); the last one stands for those past them. */
static void bs_span_lay(const bs_activations *a, int first, int count, size_t from, int rows, bs_span *span)
{
    for (int r = 0; r < rows; r += VL) {
        size_t place[VL];
        for (int i = 0; i < VL; i++)
            place[i] = bs_picked(a, from + (size_t)bs_min(r + i, rows - 1)) * ((size_t)a->pitch / 32) + (size_t)first;
        bs_lay(a->scales, place, count, &span->by[0][r], BS_LAID);
        bs_lay_made(a, place, count, r, span);
    }
}

/* --- products ---------------------------------------------------------------------------------- */

/* Blocks [first, first + count) of VO weight rows, in whole headers, and of a chunk of activation rows, laid. */
typedef struct {
    const uint8_t *const *w;
#if BS_PANELS
    const uint8_t *stored[2]; /* the panels of which weight rows are taken, */
    int lane;                 /* and the first one's place in its panel */
    const struct bs_brought *rows;
#endif
    bs_code_panel panel; /* of those blocks, once packed */
    const bs_span *span;
    bs_sender *sender; /* for the weights of the pass after this one */
    int first, count;
} bs_pass;

#if BS_PANELS
#include <code_stored.h>
#else

/* Packs all blocks of a pass. */
BS_STATIC void bs_pack(const bs_pass *p)
{
    for (int b = 0; b < p->count; b += BS_BLOCKS) {
        size_t at = (size_t)((p->first + b) / BS_BLOCKS) * BS_BLOCK_BYTES;
        for (int j = 0; j < BS_BLOCKS; j++) bs_send(p->sender);
        bs_lay_headers(p->w, at, (size_t)b, p->panel);
        bs_lay_codes(p->w, at, p->panel.codes + (size_t)b * 32 * VO);
    }
}

#endif

/* Groups [first, first + count) of four codes of a block: `dot` of each row gains the products. */
static BS_INLINE void bs_panel_groups(const uint8_t *codes, int first, int count, const int rows,
                                      const int8_t *const *x, int block, voi *dot)
{
#pragma GCC unroll 8
    for (int g = first; g < first + count; g++)
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x[r] + 32 * block + 4 * g, 4);
            dot[r] = bs_vo_dot4(dot[r], codes + (size_t)g * VO * 4, four);
        }
}

/* What the integer sums of a block begin as. */
static BS_INLINE void bs_dots_begin(const bs_pass *p, int b, const int rows, int r0, voi *dot)
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        dot[r] = (voi){0};
#if BS_STARTS
        dot[r] = vo_seti(p->span->start[b][0][r0 + r]);
#endif
    }
    BS_UNUSED(p);
    BS_UNUSED(b);
    BS_UNUSED(r0);
}

/* The exact integer products of one block with each row of the tile that begins at row `r0`, its zero and
   inner scales applied. */
static BS_INLINE void bs_panel_block(const bs_pass *p, int block, const int rows, const int8_t *const *x,
                                     int r0, voi *dot)
{
    const uint8_t *codes = p->panel.codes + (size_t)block * 32 * VO;
#if BS_TWO_SCALES
    voi half[BS_CODE_ROWS];
    for (int part = 0; part < 2; part++) {
        voi scale = vo_loadi(p->panel.scales + ((size_t)block * 2 + (size_t)part) * VO);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) half[r] = vo_seti(p->span->start[block][part][r0 + r]);
        bs_panel_groups(codes, 4 * part, 4, rows, x, block, half);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) dot[r] = scale * half[r] + (part ? dot[r] : (voi){0});
    }
#else
    bs_dots_begin(p, block, rows, r0, dot);
    bs_panel_groups(codes, 0, 8, rows, x, block, dot);
#endif
}

/* What the sums of a tile of `rows` rows begin as: a pass that does not begin at k = 0 goes on from those so far. */
static BS_INLINE void bs_tile_begin(const bs_pass *p, const int rows, const bs_sums *sums, int column, vof *acc)
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) acc[r] = p->first ? vo_load(&sums[r][column]) : (vof){0};
}

/* The products of block `b` to the sums of a tile that begins at row `r0` of the chunk. */
static BS_INLINE void bs_tile_scale(const bs_pass *p, int b, const int rows, int r0, const voi *dot, vof *acc)
{
    vof scale = vo_load(p->panel.scale + (size_t)b * VO);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        acc[r] = vo_fma(scale * p->span->by[b][r0 + r], __builtin_convertvector(dot[r], vof), acc[r]);
#if BS_HAS_OFFSET
        vof offset = vo_load(p->panel.offset + (size_t)b * VO);
        acc[r] = vo_fma(offset, vo_set(p->span->total[b][r0 + r]), acc[r]);
#endif
    }
}

/* A pass over a tile whose codes begin at `x`, by weights that are packed. */
static BS_INLINE void bs_panel_rows(const bs_pass *p, const int rows, const int send, const int8_t *const *x,
                                    int r0, bs_sums *sums, int column)
{
    vof acc[BS_CODE_ROWS];
    bs_tile_begin(p, rows, sums, column, acc);
    for (int b = 0; b < p->count; b++) {
        voi dot[BS_CODE_ROWS];
        if (send) bs_send(p->sender);
        bs_panel_block(p, b, rows, x, r0, dot);
        bs_tile_scale(p, b, rows, r0, dot, acc);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) memcpy(&sums[r][column], &acc[r], sizeof acc[r]);
}

#endif
