/* How a panel of codes meets many rows of activations: sixteen at a time, by tiles.
 *
 * A tile product sums what vectors sum, exactly, and its sums are scaled in the same steps: the bits
 * are those of the vectors, which also stand in where the system refuses the tiles.
 */
#ifndef BS_CODE_ROWS_H
#define BS_CODE_ROWS_H

#include <code_tiles.h>

#define BS_TILE_LINES 16 /* rows of a tile of activations, and of its sums */
#define BS_SHARES (1 + BS_TWO_SCALES) /* parts of a block whose products are scaled apart */
#define BS_SHARE (32 / BS_SHARES)
#define BS_TILE_LEAST 32 /* rows that are worth it */
#define BS_UNITS 4 /* shares on their way at once, each with a tile of sums */

/* Nothing may move across one that reads or writes memory: the compiler does not see which. */
#define bs_tile_load(tile, at, stride)                                                           \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(at), "r"((size_t)(stride)) : "memory")
#define bs_tile_store(tile, at, stride)                                                          \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(at), "r"((size_t)(stride)) : "memory")

/* Tile `sums`, of one share: a tile of activations times a tile of the panel, both signed. */
#define bs_tile_share(sums, x, w, row, stride, codes)                                            \
    do {                                                                                         \
        bs_tile_load(x, row, stride);                                                            \
        bs_tile_load(w, codes, 64);                                                              \
        __asm__ volatile("tilezero %%tmm" #sums ::);                                             \
        __asm__ volatile("tdpbssd %%tmm" #w ", %%tmm" #x ", %%tmm" #sums ::);                    \
    } while (0)

typedef struct {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t lines[16];
} bs_tile_shapes;

/* Tiles 0 to 3 are sums, 4 and 5 activations, 6 and 7 weights. */
static void bs_tiles_open(void)
{
    bs_tile_shapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.bytes[i] = i == 4 || i == 5 ? BS_SHARE : 64;
        shapes.lines[i] = i >= 6 ? BS_SHARE / 4 : BS_TILE_LINES;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
}

static void bs_tiles_close(void) { __asm__ volatile("tilerelease" ::); }

static int bs_tiles_granted;

/* Linux lets a process use tiles only once it has asked. */
__attribute__((constructor)) static void bs_tiles_ask(void)
{
    long answer = 158;                                           /* arch_prctl */
    register long what __asm__("rdi") = 0x1023, which __asm__("rsi") = 18; /* request, tile data */
    __asm__ volatile("syscall" : "+a"(answer) : "r"(what), "r"(which) : "rcx", "r11", "memory");
    bs_tiles_granted = answer == 0;
}

/* Codes of a panel as signed values, its zero taken off. */
static void bs_panel_signed(bs_code_panel panel, int blocks)
{
    size_t count = (size_t)blocks * 32 * VO;
    for (size_t i = 0; i < count; i++) panel.codes[i] = (uint8_t)(panel.codes[i] - BS_ZERO);
}

/* The exact products of `units` shares with sixteen rows: `x` is the first row's codes of the first
   share, `next` bytes before those of the next. */
static BS_INLINE void bs_tile_units(const uint8_t *codes, const int8_t *x, size_t stride, size_t next,
                                    int units, int32_t dot[BS_UNITS][BS_TILE_LINES][VO])
{
    const size_t share = BS_SHARE * VO;
    bs_tile_share(0, 4, 6, x, stride, codes);
    if (units > 1) bs_tile_share(1, 5, 7, x + next, stride, codes + share);
    if (units > 2) bs_tile_share(2, 4, 6, x + 2 * next, stride, codes + 2 * share);
    if (units > 3) bs_tile_share(3, 5, 7, x + 3 * next, stride, codes + 3 * share);
    bs_tile_store(0, dot[0], 64);
    if (units > 1) bs_tile_store(1, dot[1], 64);
    if (units > 2) bs_tile_store(2, dot[2], 64);
    if (units > 3) bs_tile_store(3, dot[3], 64);
}

/* What scales the products of sixteen rows, a line a row, for some blocks. */
typedef struct {
    float by[BS_TILE_LINES][BS_SPAN];
#if BS_HAS_OFFSET
    float total[BS_TILE_LINES][BS_SPAN];
#endif
} bs_row_scales;

static BS_INLINE void bs_scales_take(const bs_activations *a, const size_t *place, int count,
                                     bs_row_scales *out)
{
    for (int r = 0; r < BS_TILE_LINES; r++) {
        const float *by = a->scales + place[r];
        memcpy(out->by[r], by, (size_t)count * sizeof *by);
#if BS_HAS_OFFSET
        const int32_t *sums = a->sums + place[r];
        for (int i = 0; i < count; i++) out->total[r][i] = by[i] * (float)sums[i];
#endif
    }
}

#define BS_STEP (BS_UNITS / BS_SHARES) /* blocks on their way at once */

typedef int32_t bs_tile_sums[BS_UNITS][BS_TILE_LINES][VO];

/* The products of `blocks` blocks on their way into `dot`; rows that do not lie together are laid so. */
static BS_INLINE void bs_tiles_start(const uint8_t *codes, const bs_activations *a, const size_t *place,
                                     int i, int blocks, int together, bs_tile_sums dot)
{
    _Alignas(64) int8_t laid[BS_TILE_LINES][32 * BS_STEP];
    const int8_t *x = a->codes + 32 * (place[0] + (size_t)i);
    size_t pitch = (size_t)a->pitch;
    if (!together) {
        for (int r = 0; r < BS_TILE_LINES; r++)
            memcpy(laid[r], a->codes + 32 * (place[r] + (size_t)i), 32 * (size_t)blocks);
        x = laid[0];
        pitch = sizeof laid[0];
    }
    if (blocks == BS_STEP) bs_tile_units(codes, x, pitch, BS_SHARE, BS_UNITS, dot);
    else bs_tile_units(codes, x, pitch, BS_SHARE, blocks * BS_SHARES, dot);
}

/* Sixteen rows gain the products of one block. */
static BS_INLINE void bs_tiles_end(bs_code_panel panel, size_t at, const bs_row_scales *scales, int i,
                                   int j, bs_tile_sums dot, vof acc[BS_TILE_LINES])
{
    vof scale = vo_load(panel.scale + at * VO);
#if BS_TWO_SCALES
    voi inner[2] = {vo_loadi(panel.scales + at * 2 * VO), vo_loadi(panel.scales + (at * 2 + 1) * VO)};
#elif BS_HAS_OFFSET
    vof offset = vo_load(panel.offset + at * VO);
#endif
#pragma GCC unroll 16
    for (int r = 0; r < BS_TILE_LINES; r++) {
#if BS_TWO_SCALES
        voi sum = inner[1] * vo_loadi(dot[2 * j + 1][r]) + inner[0] * vo_loadi(dot[2 * j][r]);
#else
        voi sum = vo_loadi(dot[j][r]);
#endif
        acc[r] = vo_fma(scale * scales->by[r][i + j], __builtin_convertvector(sum, vof), acc[r]);
#if BS_HAS_OFFSET
        acc[r] = vo_fma(offset, vo_set(scales->total[r][i + j]), acc[r]);
#endif
    }
}

/* The first `count` blocks of the panel, at most BS_SPAN: sixteen rows gain their products. `place` is the
   first of those blocks in each row. While tiles multiply, what they made before is scaled. */
static BS_INLINE void bs_tile_span(bs_code_panel panel, int count, const bs_activations *a,
                                   const size_t *place, int together, vof acc[BS_TILE_LINES])
{
    _Alignas(64) bs_tile_sums dots[2];
    bs_row_scales scales;
    bs_tiles_start(panel.codes, a, place, 0, bs_min(BS_STEP, count), together, dots[0]);
    bs_scales_take(a, place, count, &scales);
    for (int i = 0, odd = 0; i < count; i += BS_STEP, odd = !odd) {
        int next = i + BS_STEP;
        if (next < count)
            bs_tiles_start(panel.codes + (size_t)next * 32 * VO, a, place, next,
                           bs_min(BS_STEP, count - next), together, dots[!odd]);
        for (int j = 0; j < bs_min(BS_STEP, count - i); j++)
            bs_tiles_end(panel, (size_t)(i + j), &scales, i, j, dots[odd], acc);
    }
}

/* A pass over sixteen rows, of which `left` count; the last one stands for those past them. */
static void bs_tile_rows(const bs_pass *p, const bs_activations *a, size_t from, int left, bs_sums *sums,
                         int column)
{
    size_t place[BS_TILE_LINES];
    vof acc[BS_TILE_LINES];
    int together = !a->pick && left == BS_TILE_LINES;
    for (int r = 0; r < BS_TILE_LINES; r++)
        place[r] = bs_picked(a, from + (size_t)bs_min(r, left - 1)) * (size_t)a->pitch / 32 + (size_t)p->first;
#pragma GCC unroll 16
    for (int r = 0; r < BS_TILE_LINES; r++)
        acc[r] = p->first ? vo_load(&sums[bs_min(r, left - 1)][column]) : (vof){0};
    bs_tile_span(p->panel, p->count, a, place, together, acc);
#pragma GCC unroll 16
    for (int r = 0; r < BS_TILE_LINES; r++)
        if (r < left) memcpy(&sums[r][column], &acc[r], sizeof acc[r]);
}

static BS_INLINE int bs_by_tiles(int rows) { return bs_tiles_granted && rows >= BS_TILE_LEAST; }

/* Tiles take the rows' scales as they lie. */
static void bs_rows_lay(const bs_activations *a, int first, int count, size_t from, int rows, bs_span *span)
{
    if (!bs_by_tiles(rows)) bs_span_lay(a, first, count, from, rows, span);
}

/* A pass over rows [from, from + rows) of the activations; few fill no tile. */
static void bs_code_rows(const bs_pass *p, const bs_activations *a, size_t from, int rows, bs_sums *sums,
                         int column)
{
    if (!bs_by_tiles(rows)) {
        bs_vector_rows(p, a, from, rows, sums, column);
        return;
    }
    bs_pack(p);
    bs_panel_signed(p->panel, p->count);
    bs_tiles_open();
    for (int r = 0; r < rows; r += BS_TILE_LINES) {
        int left = bs_min(BS_TILE_LINES, rows - r);
        for (int b = 0; b < p->count; b++) bs_send(p->sender);
        bs_tile_rows(p, a, from + (size_t)r, left, sums + r, column);
    }
    bs_tiles_close();
}

#endif
