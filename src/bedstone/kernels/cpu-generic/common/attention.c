/* attention, attention_gate, attention_in, attention_flat, gather: over a sequence's paged rows, or
 * over keys and values made of them; a block is some rows of one group of heads.
 */
#include <attention_pieces.h>

#define ROWS 32 /* of a block */

/* How an entry differs from the plainest: where keys and values lie, and what else it takes. */
typedef struct {
    int flat, split, values_in_keys, gated, to_float, to_codes, in_pieces;
} form;

/* Of a table that several sequences share: a row of `pages` each. */
typedef struct {
    const int32_t *pages;
    int page, width, stride;
} paging;

static BS_INLINE void read_buffers(bs_cursor *at, form f, bs_attention *a, paging *p)
{
    a->q = bs_ptr(at);
    if (f.split && !f.flat) a->q_tail = bs_ptr(at);
    a->k.x = bs_ptr(at);
    a->v.x = f.values_in_keys ? a->k.x : bs_ptr(at);
    if (f.split && f.flat) a->k_tail.x = bs_ptr(at);
    if (f.gated) a->gate = bs_ptr(at);
    a->position = bs_ptr(at);
    if (!f.flat || f.split) p->pages = bs_ptr(at);
    if (f.in_pieces) a->parts = bs_ptr(at);
    else a->out = bs_forms_out(at, f.to_float, f.to_codes);
}

static BS_INLINE void read_sizes(bs_cursor *at, form f, bs_attention *a, paging *p)
{
    a->rows = bs_i32(at);
    a->heads = bs_i32(at);
    a->groups = bs_i32(at);
    a->dk = a->own = bs_i32(at);
    a->dv = bs_i32(at);
    if (!f.flat || f.split) {
        p->page = bs_i32(at);
        p->width = bs_i32(at);
    }
    if (!f.flat) p->stride = bs_i32(at);
    a->scale = bs_f32(at);
    a->window = bs_i32(at);
    a->softcap = bs_f32(at);
    if (f.gated) a->from_gate = bs_window_in(at);
}

/* Keys and values in buffers; the rest of a key, where it is split, in columns of a table. */
static BS_INLINE void lay_flat(bs_cursor *at, form f, bs_attention *a, paging *p)
{
    a->k.pitch = (size_t)bs_i32(at);
    a->k.unit = (size_t)bs_i32(at);
    a->v.pitch = (size_t)bs_i32(at);
    a->v.unit = (size_t)bs_i32(at);
    if (!f.split) return;
    a->own = bs_i32(at);
    a->q_tail = a->q + a->own;
    a->q_tail_pitch = a->dk;
    size_t pitch = (size_t)bs_i32(at);
    a->k_tail = (bs_rows){(const bs_cell *)a->k_tail.x + bs_i32(at), p->pages, p->page, 1, pitch, 0};
}

/* Keys and values in tables. */
static BS_INLINE void lay_paged(bs_cursor *at, form f, bs_attention *a, paging *p)
{
    int dv = f.values_in_keys ? a->dk : a->dv;
    a->k = (bs_rows){a->k.x, 0, p->page, 1, (size_t)(a->groups * a->dk), (size_t)a->dk};
    a->v = (bs_rows){a->v.x, 0, p->page, 1, (size_t)(a->groups * dv), (size_t)dv};
    if (!f.split) return;
    a->own = a->q_pitch = bs_i32(at);
    a->q_tail_pitch = a->dk - a->own;
    a->k_tail = a->k;
    a->k_tail.x = (const bs_cell *)a->k.x + a->own;
}

static BS_INLINE void read_attention(bs_cursor *at, form f, bs_attention *a, paging *p)
{
    read_buffers(at, f, a, p);
    read_sizes(at, f, a, p);
    a->q_pitch = a->dk;
    if (f.flat) lay_flat(at, f, a, p);
    else lay_paged(at, f, a, p);
}

static BS_INLINE const int32_t *pages_of(const paging *p, int row)
{
    return p->pages + (size_t)row * (size_t)p->stride * (size_t)p->width;
}

static BS_INLINE void find_pages(bs_attention *a, const paging *p, int row)
{
    a->k.pages = a->v.pages = a->k_tail.pages = pages_of(p, row);
}

/* The last rows of a chunk see most, and so begin first. */
static BS_INLINE void attention_entry(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid,
                                      void *shared, form f)
{
    bs_attention a = {0};
    paging p = {0};
    read_attention(&args, f, &a, &p);
    int first = ROWS * (int)(grid->x - 1 - block->x), rows = bs_min(ROWS, a.rows - first);
    int step = p.stride ? 1 : ROWS;
    for (int r = 0; r < rows; r += step) {
        if (!f.flat) find_pages(&a, &p, first + r);
        attend_rows(&a, (int)block->y, first + r, bs_min(step, rows - r), shared);
    }
}

/* --- in pieces --------------------------------------------------------------------------------- */

/* What comes after task `t`, wherever it is done: most often by the same thread. */
static BS_INLINE following coming_after(const bs_attention *a, const paging *p, task t)
{
    following next = {a->k, t.group, 0, -1};
    if (t.row == a->rows) return next;
    next.k.pages = pages_of(p, t.row);
    next.from = bs_max(t.piece * PIECE, first_seen(a, t.row));
    next.last = a->position[t.row];
    return next;
}

/* The pieces of all rows are dealt in their order to all blocks: of many pieces whole ones, which are read in the
   order of memory, of few a group at a time. */
static BS_INLINE void pieces_entry(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid,
                                   void *shared, form f)
{
    bs_attention a = {0};
    paging p = {0};
    int64_t pieces = 0, blocks = grid->x, at = block->x;
    f.in_pieces = 1;
    read_attention(&args, f, &a, &p);
    for (int r = 0; r < a.rows; r++) pieces += pieces_of(&a, r);
    int apart = 4 * pieces < blocks ? a.groups : 1, most = bs_ceil_div(p.page * p.width, PIECE);
    int end = (int)(pieces * apart * (at + 1) / blocks);
    for (int i = (int)(pieces * apart * at / blocks); i < end; i++) {
        task t = task_at(&a, i, apart);
        following then = coming_after(&a, &p, task_at(&a, i + 1, apart));
        find_pages(&a, &p, t.row);
        attend_part(&a, t, &then, part_of(&a, t.row, most, t.piece), shared);
    }
}

/* --- what pieces read ------------------------------------------------------------------------- */

#define TOLD_ROWS 64 /* of a launch that tells what it reads */

/* Positions [from, last] of a table, a page at a time. */
static int32_t pages_read(const bs_rows *table, int from, int last, bs_range *out, int32_t most)
{
    int32_t count = 0;
    for (int to; from <= last && count < most; from = to + 1) {
        to = bs_min(last, from / table->page * table->page + table->page - 1);
        const uint8_t *at = row_of(table, from);
        size_t bytes = (size_t)(to - from + 1) * table->pitch * (size_t)bs_value_bytes(table->cells);
        out[count++] = (bs_range){at, at + bytes};
    }
    return count;
}

/* Positions are copied, within what the table holds: they may be written meanwhile. */
static BS_INLINE int32_t pieces_read(const bs_arg *args, uint64_t from, uint64_t to, uint64_t blocks, bs_range *out,
                                     int32_t most, form f)
{
    bs_attention a = {0};
    paging p = {0};
    int32_t position[TOLD_ROWS], count = 0;
    int64_t pieces = 0;
    f.in_pieces = 1;
    read_attention(&args, f, &a, &p);
    if (a.rows > TOLD_ROWS) return 0;
    for (int r = 0; r < a.rows; r++) position[r] = bs_min(a.position[r], p.page * p.width - 1);
    a.position = position;
    for (int r = 0; r < a.rows; r++) pieces += pieces_of(&a, r);
    int end = (int)(pieces * (int64_t)to / (int64_t)blocks);
    for (int i = (int)(pieces * (int64_t)from / (int64_t)blocks); i < end && count < most; i++) {
        task t = task_at(&a, i, 1);
        int first = bs_max(t.piece * PIECE, first_seen(&a, t.row));
        int last = bs_min(position[t.row], t.piece * PIECE + PIECE - 1);
        find_pages(&a, &p, t.row);
        count += pages_read(&a.k, first, last, out + count, most - count);
        if (!f.values_in_keys) count += pages_read(&a.v, first, last, out + count, most - count);
    }
    return count;
}

static BS_INLINE void join_entry(const bs_arg *args, const bs_dim3 *block, void *shared, form f)
{
    bs_attention a = {0};
    a.position = bs_ptr(&args);
    a.parts = bs_ptr(&args);
    if (f.gated) a.gate = bs_ptr(&args);
    a.out = bs_forms_out(&args, f.to_float, f.to_codes);
    a.rows = bs_i32(&args);
    a.heads = bs_i32(&args);
    a.groups = bs_i32(&args);
    a.dv = bs_i32(&args);
    int page = bs_i32(&args), width = bs_i32(&args);
    a.window = bs_i32(&args);
    if (f.gated) a.from_gate = bs_window_in(&args);
    join_pieces(&a, (int)block->y, (int)block->x, bs_ceil_div(page * width, PIECE), shared);
}

/* --- entries ----------------------------------------------------------------------------------- */

#define X "in buffer<f32>, "
#define S "in state, "
#define I "in buffer<i32>, "
#define F "out buffer<f32>, "
#define Q "out buffer<i8>, out buffer<f32>, out buffer<i32>, "
#define PAGED "i32, i32, i32, i32, i32, i32, i32, i32, f32, i32, f32"
#define GATED ", i32, i32, i32"
#define JOINED "i32, i32, i32, i32, i32, i32, i32"
#define FLAT "i32, i32, i32, i32, i32, f32, i32, f32, i32, i32, i32, i32"
#define SPLIT "i32, i32, i32, i32, i32, i32, i32, f32, i32, f32, i32, i32, i32, i32, i32, i32, i32"

/* What may round has names, and a module, of its own. */
#if BS_ROUND
#define NAMED(entry, suffix) entry##_r##suffix
#else
#define NAMED(entry, suffix) entry##suffix
#endif

#define ATTENTION(entry, types, ...)                                     \
    BS_KERNEL(entry, types)                                              \
    {                                                                    \
        attention_entry(args, block, grid, shared, (form){__VA_ARGS__}); \
    }

/* flat, split, values in keys, gated, then the forms of the result */
#define FORMS(suffix, outs, ...)                                                                             \
    ATTENTION(NAMED(attention, suffix), X S S I I outs PAGED, 0, 0, 0, 0, __VA_ARGS__)                       \
    ATTENTION(NAMED(attention_gate, suffix), X S S X I I outs PAGED GATED, 0, 0, 0, 1, __VA_ARGS__)          \
    ATTENTION(NAMED(attention_in, suffix), X S I I outs PAGED, 0, 0, 1, 0, __VA_ARGS__)                      \
    ATTENTION(NAMED(attention_in_split, suffix), X X S I I outs PAGED ", i32", 0, 1, 1, 0, __VA_ARGS__)      \
    ATTENTION(NAMED(attention_flat, suffix), X X X I outs FLAT, 1, 0, 0, 0, __VA_ARGS__)                     \
    ATTENTION(NAMED(attention_flat_split, suffix), X X X S I I outs SPLIT, 1, 1, 0, 0, __VA_ARGS__)          \
    JOIN(NAMED(attention_join, suffix), I X outs JOINED, 0, 0, 0, 0, __VA_ARGS__)                            \
    JOIN(NAMED(attention_join_gate, suffix), I X X outs JOINED GATED, 0, 0, 0, 1, __VA_ARGS__)

#define JOIN(entry, types, ...)                               \
    BS_KERNEL(entry, types)                                   \
    {                                                         \
        BS_UNUSED(grid);                                      \
        join_entry(args, block, shared, (form){__VA_ARGS__}); \
    }

FORMS(, F, 1, 0)
FORMS(_q, Q, 0, 1)
FORMS(_fq, F Q, 1, 1)

#define PIECES(entry, types, ...)                                     \
    BS_KERNEL(entry, types)                                           \
    {                                                                 \
        pieces_entry(args, block, grid, shared, (form){__VA_ARGS__}); \
    }

#define TELLS(entry, ...)                                                            \
    BS_READS(entry)                                                                  \
    {                                                                                \
        return pieces_read(args, from, to, blocks, out, most, (form){__VA_ARGS__}); \
    }

TELLS(NAMED(attention_pieces, ), 0)
TELLS(NAMED(attention_in_pieces, ), 0, 0, 1)
TELLS(NAMED(attention_in_split_pieces, ), 0, 1, 1)

PIECES(NAMED(attention_pieces, ), X S S I I F PAGED, 0)
PIECES(NAMED(attention_in_pieces, ), X S I I F PAGED, 0, 0, 1)
PIECES(NAMED(attention_in_split_pieces, ), X X S I I F PAGED ", i32", 0, 1, 1)

#if !BS_ROUND

/* --- gather ------------------------------------------------------------------------------------ */

#define GATHERED 16 /* rows of a block */

static BS_INLINE void gather_entry(const bs_arg *args, const bs_dim3 *block, int to_float, int to_codes)
{
    bs_cursor at = args;
    bs_rows table = {0};
    table.cells = 1;
    table.x = bs_ptr(&at);
    table.pages = bs_ptr(&at);
    bs_forms out = bs_forms_out(&at, to_float, to_codes);
    int rows = bs_i32(&at), width = bs_i32(&at), first = GATHERED * (int)block->x;
    table.page = bs_i32(&at);
    table.pitch = (size_t)bs_i32(&at);
    table.x = (const bs_cell *)table.x + bs_i32(&at);
    for (int t = first; t < bs_min(first + GATHERED, rows); t++) {
        const bs_cell *row = (const bs_cell *)row_of(&table, t);
        for (int i = 0; i < width; i += BS_QBLOCK) {
            float some[BS_QBLOCK];
            int count = bs_min(BS_QBLOCK, width - i);
            for (int j = 0; j < count; j += VL)
                vf_store(some + j, bs_cells_load(row + i + j, bs_min(VL, count - j)));
            bs_put_forms(out, (size_t)t * (size_t)width + (size_t)i, some, count);
        }
    }
}

#define GATHER(suffix, outs, to_float, to_codes)                             \
    BS_KERNEL(gather##suffix, S I outs "i32, i32, i32, i32, i32")            \
    {                                                                        \
        BS_UNUSED(grid);                                                     \
        BS_UNUSED(shared);                                                   \
        gather_entry(args, block, to_float, to_codes);                       \
    }

GATHER(, F, 1, 0)
GATHER(_q, Q, 0, 1)
GATHER(_fq, F Q, 1, 1)

#endif
