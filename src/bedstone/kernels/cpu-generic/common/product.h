/* Products of some rows of activations with a list of weight rows, for one weight format.
 *
 * What a sum's order depends on: the set's lanes and the format, nothing else. So one row gives the
 * same bits alone, among many rows, and beside any other weight rows: the way for few rows reads
 * weights as they lie, the one for many lays a panel of them into scratch first, and both take the
 * same steps for every sum.
 */
#ifndef BS_PRODUCT_H
#define BS_PRODUCT_H

#include <float_product.h>
#include <pair_product.h>
#if !BS_DENSE
#include <code_rows.h>
#include <code_stored_tiles.h>
#endif

/* How many bytes ahead of a weight row the second-level cache is filled: whole eights of rows, as rows go
   by, so what lies there is always read later; enough for what a core can have on its way. */
static BS_INLINE size_t bs_ahead(size_t row_bytes)
{
    const size_t least = 12 * 1024;
    return 8 * row_bytes * ((least + 8 * row_bytes - 1) / (8 * row_bytes));
}

/* How many rows of a list follow each other from its first on. */
static BS_INLINE size_t bs_run(const bs_weight_rows *w, size_t pitch)
{
    size_t run = 0;
    while (run < (size_t)w->count && w->row[run] == w->row[0] + run * pitch) run++;
    return run;
}

/* Sends for the first rows of a list whose rows were not sent for ahead, run by run. Scratch holds anything
   where another kernel used it: then they are sent for once more, which costs little. */
static void bs_send_for(const bs_weight_rows *w, int k, bs_scratch *scratch)
{
    size_t pitch = bs_row_bytes(k);
    if (scratch->coming != w->row[0])
        for (int c = 0; c < w->count; c++)
            if (c == 0 || w->row[c] != w->row[c - 1] + pitch)
                for (size_t at = 0; at < bs_ahead(pitch); at += 64) __builtin_prefetch(w->row[c] + at, 0, 2);
    scratch->coming = w->row[0] + bs_run(w, pitch) * pitch;
}

static void bs_float_few(const bs_activations *a, const bs_weight_rows *w, size_t from, int rows,
                         bs_sums *sums)
{
    size_t ahead = bs_ahead(bs_row_bytes(a->k));
    for (int c = 0; c < w->count; c += 8)
        for (int r = 0; r < rows; r++) {
            const float *x = a->x + bs_picked(a, from + (size_t)r) * (size_t)a->pitch;
            bs_dots(1, 8, 0, &x, w->row + c, a->k, ahead, sums + r, c);
        }
}

/* Weight rows [first, first + count) against tiles of rows, four weight rows at a time. */
static BS_INLINE void bs_float_tiles(const bs_activations *a, const uint8_t *const *w, const int packed,
                                     size_t from, int rows, int first, int count, bs_sums *sums)
{
    for (int r = 0; r < rows; r += BS_TILE_ROWS) {
        const float *x[BS_TILE_ROWS];
        for (int i = 0; i < BS_TILE_ROWS; i++)
            x[i] = a->x + bs_picked(a, from + (size_t)bs_min(r + i, rows - 1)) * (size_t)a->pitch;
        for (int c = 0; c < count; c += 4)
            bs_dots(BS_TILE_ROWS, 4, packed, x, w + c, a->k, 0, sums + r, first + c);
    }
}

static void bs_float_many(const bs_activations *a, const bs_weight_rows *w, size_t from, int rows,
                          bs_scratch *scratch)
{
#if !BS_DENSE
    uint8_t *memory = (uint8_t *)(scratch->sums + BS_FLOAT_CHUNK + BS_SPARE);
    size_t row_bytes = (size_t)a->k * sizeof(float);
    int fit = (int)((size_t)((uint8_t *)(scratch + 1) - memory) / row_bytes) & ~3;
    for (int first = 0; fit && first < w->count; first += fit) {
        const uint8_t *panel[BS_LIST];
        int count = bs_min(fit, (w->count - first + 3) & ~3);
        for (int c = 0; c < count; c++) {
            panel[c] = memory + (size_t)c * row_bytes;
            bs_unpack_row(w->row[first + c], a->k, (float *)(memory + (size_t)c * row_bytes));
        }
        bs_float_tiles(a, panel, 1, from, rows, first, count, scratch->sums);
    }
    if (fit) return;
#endif
    bs_float_tiles(a, w->row, 0, from, rows, 0, w->count, scratch->sums);
}

#if !BS_DENSE

BS_STATIC void bs_codes_few(const bs_activations *a, const bs_weight_rows *w, size_t from, int rows,
                         bs_sums *sums)
{
    size_t ahead = bs_ahead(bs_row_bytes(a->k));
    for (int c = 0; c < w->count; c += 8)
        for (int r = 0; r < rows; r++) {
            v8f eight = bs_eight(w->row + c, a, bs_picked(a, from + (size_t)r), ahead);
            memcpy(&sums[r][c], &eight, sizeof eight);
        }
}

/* What is read after a pass over weight rows [c, c + wide): from which row of the list, blocks [first, first + count);
   behind the list's last ones `before`, the bytes to a list that begins where its first rows end. */
typedef struct {
    int row, first, count;
    size_t before;
} bs_next;

static BS_INLINE bs_next bs_next_of(const bs_weight_rows *w, int k, int c, int wide, const bs_pass *p)
{
    bs_next next = {.row = c + wide, .first = p->first, .count = p->count};
    if (next.row < w->count) return next;
    next.row = 0;
    next.first += p->count;
    if (next.first == k / 32) {
        next.first = 0;
        next.before = bs_run(w, bs_row_bytes(k)) * bs_row_bytes(k);
    }
    next.count = bs_min(BS_SPAN, k / 32 - next.first);
    return next;
}

#if BS_PANELS

/* The panels that come after a pass over some, in `steps` steps. `panels` is where they begin. */
static BS_INLINE bs_sender bs_after(const bs_weight_rows *w, int k, int c, int wide, const bs_pass *p, int steps,
                                    const uint8_t *panels[2])
{
    bs_next next = bs_next_of(w, k, c, wide, p);
    int first = next.row - next.row % BS_STORED_ROWS, more = first + BS_STORED_ROWS < w->count;
    panels[0] = w->row[first];
    panels[1] = w->row[more ? first + BS_STORED_ROWS : first];
    bs_sender s = {.along = p->sender->along, .w = panels, .rows = wide > BS_STORED_ROWS && more ? 2 : 1};
    s.skip = next.before + BS_STORED_ROWS * bs_row_bytes(32 * next.first);
    s.bytes = BS_STORED_ROWS * bs_row_bytes(32 * next.count);
    s.each = bs_ceil_div(s.rows * bs_ceil_div((int)s.bytes, 64), steps);
    return s;
}

#else

/* The weights that come after those of a pass over weight rows [c, c + VO), in `steps` steps. */
static BS_INLINE bs_sender bs_after(const bs_weight_rows *w, int k, int c, const bs_pass *p, int steps)
{
    bs_next next = bs_next_of(w, k, c, VO, p);
    size_t pitch = bs_row_bytes(k);
    bs_sender s = {.w = w->row + next.row, .rows = VO};
    s.skip = next.before + bs_row_bytes(32 * next.first);
    s.bytes = bs_row_bytes(32 * next.count);
    if (s.bytes == pitch && s.w[VO - 1] == s.w[0] + (VO - 1) * pitch) {
        s.rows = 1;
        s.bytes = VO * pitch;
    }
    s.each = bs_ceil_div(s.rows * bs_ceil_div((int)s.bytes, 64), steps);
    return s;
}

#endif

#if BS_DIRECT

/* The blocks from `first` on of a list that is stored in panels. */
static void bs_codes_stored(const bs_activations *a, const bs_weight_rows *w, int first, size_t from, int rows,
                            bs_scratch *scratch)
{
    bs_sender sender = {.along = bs_along ? bs_along() : 0};
    bs_brought *brought = (bs_brought *)scratch->panel;
    bs_pass pass = {.first = first, .count = bs_min(BS_SPAN, a->k / 32 - first), .rows = brought, .sender = &sender};
    int steps = pass.count * bs_ceil_div(rows, BS_STORED_TILE);
    bs_stored_lay(a, first, pass.count, from, rows, brought);
    for (int c = 0; c < w->count; c += 2 * VO) {
        const uint8_t *panels[2];
        sender = bs_after(w, a->k, c, 2 * VO, &pass, steps, panels);
        /* past the last panel it is taken once more: its sums are nobody's */
        for (int i = 0; i < 2; i++) pass.stored[i] = w->row[bs_min(c + i * VO, w->count - VO)];
        bs_stored_rows(&pass, a, from, rows, scratch->sums, c);
    }
}

_Static_assert(BS_CHUNK * sizeof(bs_brought) <= sizeof(((bs_scratch *)0)->panel), "what rows bring fits");

#endif

static void bs_codes_many(const bs_activations *a, const bs_weight_rows *w, size_t from, int rows,
                          bs_scratch *scratch)
{
    bs_span *span = (bs_span *)scratch->panel;
    int tiles = bs_min(bs_ceil_div(rows, BS_CODE_ROWS), BS_SEND_TILES);
    for (int first = 0; first < a->k / 32; first += BS_SPAN) {
#if BS_DIRECT
        if (!bs_by_tiles(rows)) {
            bs_codes_stored(a, w, first, from, rows, scratch);
            continue;
        }
#endif
        bs_sender sender = {0};
        bs_pass pass = {.first = first, .count = bs_min(BS_SPAN, a->k / 32 - first), .span = span};
        pass.sender = &sender;
        pass.panel = bs_panel_at(span + 1, pass.count);
        bs_rows_lay(a, pass.first, pass.count, from, rows, span);
        for (int c = 0; c < w->count; c += VO) {
#if BS_PANELS
            const uint8_t *panels[2];
            sender = bs_after(w, a->k, c, VO, &pass, pass.count * (1 + tiles), panels);
            pass.lane = c % BS_STORED_ROWS;
            pass.stored[0] = w->row[c - pass.lane];
#else
            sender = bs_after(w, a->k, c, &pass, pass.count * (1 + tiles));
            pass.w = w->row + c;
#endif
            bs_code_rows(&pass, a, from, rows, scratch->sums, c);
        }
    }
}

_Static_assert(sizeof(bs_span) + BS_SPAN * BS_PANEL_ROW <= sizeof(((bs_scratch *)0)->panel), "a span fits");

#endif

/* Rows [from, from + rows) of the activations, rows <= bs_chunk(a), into the scratch's sums. */
static void bs_product(const bs_activations *a, const bs_weight_rows *w, size_t from, int rows,
                       bs_scratch *scratch)
{
    int few = !BS_PANELS && rows <= (a->x ? BS_FEW_ROWS : BS_FEW_CODE_ROWS);
    if (few) bs_send_for(w, a->k, scratch);
#if BS_ROUNDED
    if (a->rounded) {
        if (few) bs_pairs_few(a, w, from, rows, bs_ahead(bs_row_bytes(a->k)), scratch);
        else bs_pairs_many(a, w, from, rows, scratch);
        return;
    }
#endif
#if !BS_DENSE
    if (!a->x) {
        if (few) bs_codes_few(a, w, from, rows, scratch->sums);
        else bs_codes_many(a, w, from, rows, scratch);
        return;
    }
#endif
    if (few) bs_float_few(a, w, from, rows, scratch->sums);
    else bs_float_many(a, w, from, rows, scratch);
}

#endif
