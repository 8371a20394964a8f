/* Int8 activations times weight rows of a quantized format.
 *
 * A block's 32 products are summed exactly in integers, then scaled into the sum, block by block:
 *     sum += (w scale * x scale) * products [ + w offset * (x scale * sum of x codes) ]
 */
#ifndef BS_CODE_PRODUCT_H
#define BS_CODE_PRODUCT_H

#include <weights.h>

#if BS_SIGNED
#define bs_dot4 dot4_i8
#define bs_vo_dot4 vo_dot4_i8
#else
#define bs_dot4 dot4_u8
#define bs_vo_dot4 vo_dot4_u8
#endif

/* The headers of eight rows at one place: scales and offsets of the 32s behind it. */
typedef struct {
    v8f scale, offset;
#if BS_FORMAT == BS_Q4_K
    uint8_t six[16][8]; /* scale of each 32, then its offset; a byte a row */
#elif BS_FORMAT == BS_Q6_K
    uint8_t scales[16][8]; /* of each 16 */
#endif
} bs_headers;

static BS_INLINE void bs_headers_load(const uint8_t *const w[8], size_t at, bs_headers *h)
{
#if BS_FORMAT == BS_Q4_1
    v8_from_f16_pair(w, at, &h->scale, &h->offset);
#elif BS_FORMAT == BS_Q4_K
    v8_from_f16_pair(w, at, &h->scale, &h->offset);
    uint8_t six[8][16];
    for (int i = 0; i < 8; i++) bs_six_bits(w[i] + at + 4, six[i]);
    bytes_transpose(six, h->six);
#elif BS_FORMAT == BS_Q6_K
    /* the half float ends the block: read it through the word that ends there */
    v8f before;
    v8_from_f16_pair(w, at + 206, &before, &h->scale);
    uint8_t scales[8][16];
    for (int i = 0; i < 8; i++) memcpy(scales[i], w[i] + at + 192, 16);
    bytes_transpose(scales, h->scales);
#else
    h->scale = v8_from_f16(w, at);
#endif
}

static BS_INLINE v8f bs_scale(const bs_headers *h, int j)
{
    BS_UNUSED(j);
#if BS_FORMAT == BS_Q4_K
    return h->scale * v8_from_i32(v8_from_u8(h->six[j]));
#else
    return h->scale;
#endif
}

static BS_INLINE v8f bs_offset(const bs_headers *h, int j)
{
    BS_UNUSED(j);
#if BS_FORMAT == BS_Q4_K
    return -(h->offset * v8_from_i32(v8_from_u8(h->six[8 + j])));
#else
    return h->offset;
#endif
}

/* The exact products of 32 values of eight rows with the codes `x`, whose sum is `total`; the zero and
   inner scales are applied. */
static BS_INLINE v8i bs_eight_dots(const uint8_t *const w[8], size_t at, const bs_headers *h, int j,
                                   const uint8_t *x, int32_t total)
{
    BS_UNUSED(h);
#if BS_FORMAT == BS_Q4_0 || BS_FORMAT == BS_Q4_1
    BS_UNUSED(j);
    return v8_nibble_dots(w, at + BS_BLOCK_BYTES - 16, x) - BS_ZERO * total;
#else
    vb codes = vb_load(x);
    v8i p[8], first, second;
#if BS_TWO_SCALES
    BS_UNUSED(total);
    v8i start = -BS_ZERO * dot4_u8((v8i){0}, (uint8_t)1 - (vb){0}, codes);
#else
    v8i start = {0};
#endif
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) p[i] = bs_dot4(start, bs_codes(w[i] + at, j), codes);
    v8_halves(p, &first, &second);
#if BS_TWO_SCALES
    return first * v8_from_i8(h->scales[2 * j]) + second * v8_from_i8(h->scales[2 * j + 1]);
#else
    return first + second - BS_ZERO * total;
#endif
#endif
}

/* One activation row with eight weight rows, 32 products of each at a time. */
static BS_INLINE v8f bs_eight(const uint8_t *const w[8], const bs_activations *a, size_t row,
                              size_t ahead)
{
    size_t blocks = (size_t)a->k / 32;
    const uint8_t *x = (const uint8_t *)a->codes + row * (size_t)a->pitch;
    const float *scales = a->scales + row * (size_t)a->pitch / 32;
    const int32_t *sums = a->sums + row * (size_t)a->pitch / 32;
    v8f acc = {0};
    for (size_t b = 0; b < blocks; b += BS_BLOCKS) {
        size_t at = b / BS_BLOCKS * BS_BLOCK_BYTES;
        bs_headers headers;
        bs_headers_load(w, at, &headers);
        for (int i = 0; i < 8; i++)
            for (size_t line = 0; line < BS_BLOCK_BYTES; line += 64)
                __builtin_prefetch(w[i] + at + line + ahead, 0, 2);
        for (int j = 0; j < BS_BLOCKS; j++) {
            v8i dot = bs_eight_dots(w, at, &headers, j, x + 32 * (b + (size_t)j), sums[b + (size_t)j]);
            v8f scale = bs_scale(&headers, j) * scales[b + (size_t)j];
            acc = v8_fma(scale, v8_from_i32(dot), acc);
#if BS_HAS_OFFSET
            v8f total = v8_set(scales[b + (size_t)j] * (float)sums[b + (size_t)j]);
            acc = v8_fma(bs_offset(&headers, j), total, acc);
#endif
        }
    }
    return acc;
}

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

/* Blocks [from, from + blocks) of VO weight rows; `from` and `blocks` in whole headers. */
static void bs_pack(const uint8_t *const *w, int from, int blocks, bs_code_panel panel)
{
    for (int lane = 0; lane < VO; lane += 8)
        for (int b = 0; b < blocks; b += BS_BLOCKS) {
            size_t at = (size_t)((from + b) / BS_BLOCKS) * BS_BLOCK_BYTES;
            bs_headers headers;
            bs_headers_load(w + lane, at, &headers);
            for (int j = 0; j < BS_BLOCKS; j++) {
                size_t place = (size_t)(b + j) * VO + (size_t)lane;
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
                vb codes[8];
                for (int i = 0; i < 8; i++) codes[i] = bs_codes(w[lane + i] + at, j);
                vb_interleave(codes, panel.codes + ((size_t)(b + j) * 8 * VO + (size_t)lane) * 4, VO);
            }
        }
}

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

/* Blocks [first, first + count) of VO weight rows, packed, and of a chunk of activation rows, laid. */
typedef struct {
    bs_code_panel panel;
    const bs_span *span;
    const uint8_t *const *w;
    int first, count;
} bs_pass;

/* Groups [first, first + count) of four codes of a block: `dot` of each row gains the products. */
static BS_INLINE void bs_panel_groups(const uint8_t *codes, int first, int count,
                                      const int8_t *const x[BS_CODE_ROWS], int block, voi dot[BS_CODE_ROWS])
{
#pragma GCC unroll 8
    for (int g = first; g < first + count; g++)
#pragma GCC unroll 8
        for (int r = 0; r < BS_CODE_ROWS; r++) {
            int32_t four;
            memcpy(&four, x[r] + 32 * block + 4 * g, 4);
            dot[r] = bs_vo_dot4(dot[r], codes + (size_t)g * VO * 4, four);
        }
}

/* The exact integer products of one block with each row of the tile that begins at row `r0`, its zero and
   inner scales applied. */
static BS_INLINE void bs_panel_block(const bs_pass *p, int block, const int8_t *const x[BS_CODE_ROWS], int r0,
                                     voi dot[BS_CODE_ROWS])
{
    const uint8_t *codes = p->panel.codes + (size_t)block * 32 * VO;
#if BS_TWO_SCALES
    voi half[BS_CODE_ROWS];
    for (int part = 0; part < 2; part++) {
        voi scale = vo_loadi(p->panel.scales + ((size_t)block * 2 + (size_t)part) * VO);
#pragma GCC unroll 8
        for (int r = 0; r < BS_CODE_ROWS; r++) half[r] = vo_seti(p->span->start[block][part][r0 + r]);
        bs_panel_groups(codes, 4 * part, 4, x, block, half);
#pragma GCC unroll 8
        for (int r = 0; r < BS_CODE_ROWS; r++) dot[r] = scale * half[r] + (part ? dot[r] : (voi){0});
    }
#else
    BS_UNUSED(r0);
#pragma GCC unroll 8
    for (int r = 0; r < BS_CODE_ROWS; r++) {
        dot[r] = (voi){0};
#if BS_STARTS
        dot[r] = vo_seti(p->span->start[block][0][r0 + r]);
#endif
    }
    bs_panel_groups(codes, 0, 8, x, block, dot);
#endif
}

/* A pass over the tile of rows that begins at row `r0` of the chunk, whose codes begin at `x`. One that does
   not begin at k = 0 goes on from the sums so far. */
static void bs_panel_rows(const bs_pass *p, const int8_t *const x[BS_CODE_ROWS], int r0, bs_sums *sums,
                          int column)
{
    vof acc[BS_CODE_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < BS_CODE_ROWS; r++) acc[r] = p->first ? vo_load(&sums[r][column]) : (vof){0};
    for (int b = 0; b < p->count; b++) {
        voi dot[BS_CODE_ROWS];
        vof scale = vo_load(p->panel.scale + (size_t)b * VO);
        bs_panel_block(p, b, x, r0, dot);
#pragma GCC unroll 8
        for (int r = 0; r < BS_CODE_ROWS; r++) {
            acc[r] = vo_fma(scale * p->span->by[b][r0 + r], __builtin_convertvector(dot[r], vof), acc[r]);
#if BS_HAS_OFFSET
            vof offset = vo_load(p->panel.offset + (size_t)b * VO);
            acc[r] = vo_fma(offset, vo_set(p->span->total[b][r0 + r]), acc[r]);
#endif
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < BS_CODE_ROWS; r++) memcpy(&sums[r][column], &acc[r], sizeof acc[r]);
}

/* Sends for a part of the weights that follow a pass's, where the next ones mostly lie: as much as is due
   after rows [r, r + count) of `rows`, so that all have come when the next panel is packed. */
static BS_INLINE void bs_send_next(const bs_pass *p, int k, int r, int count, int rows)
{
    size_t skip = VO * bs_row_bytes(k) + bs_row_bytes(32 * p->first), bytes = bs_row_bytes(32 * p->count);
    size_t lines = VO * ((bytes + 63) / 64), end = lines * (size_t)(r + count) / (size_t)rows;
    for (size_t i = lines * (size_t)r / (size_t)rows; i < end; i++)
        __builtin_prefetch(p->w[i % VO] + skip + i / VO * 64, 0, 3);
}

/* A pass over rows [from, from + rows) of the activations, by vectors. */
static void bs_vector_rows(const bs_pass *p, const bs_activations *a, size_t from, int rows, bs_sums *sums,
                           int column)
{
    for (int r = 0; r < rows; r += BS_CODE_ROWS) {
        const int8_t *x[BS_CODE_ROWS];
        for (int i = 0; i < BS_CODE_ROWS; i++) {
            size_t row = bs_picked(a, from + (size_t)bs_min(r + i, rows - 1));
            x[i] = a->codes + row * (size_t)a->pitch + 32 * (size_t)p->first;
        }
        bs_send_next(p, a->k, r, bs_min(BS_CODE_ROWS, rows - r), rows);
        bs_panel_rows(p, x, r, sums + r, column);
    }
}

#endif
