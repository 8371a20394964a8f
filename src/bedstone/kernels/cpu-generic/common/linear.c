/* linear, parts2 to parts4, glu: matrix products of one weight format, a block a share of the outputs. */
#include <gate.h>
#include <product.h>
#include <quantize.h>
#include <table.h>

BS_THREADS

#define BS_PARTS 4 /* matrices of one launch, at most */
#define BS_UNIT 16 /* outputs dealt together: whole panels and tiles of every set */
#define BS_MANY_ROWS 256 /* by which weights are read twice: what rows bring is made once a block */
#define BS_APART_ROWS 8
#define BS_APART_BYTES (2 << 20) /* of weights that two threads may read each */
#define BS_PUT_AHEAD 16 /* rows between sending for a place and putting sums there */
#define BS_LINE 64
#define BS_TILE BS_QBLOCK /* outputs of a gated unit's block: one block of its quantized form */

/* One matrix [n, k] and where its products go: rows of `y`, or of a table's rows `slot`.
   They have `bias` [n] added, then the rows `add`; where there is a `cap`, they are bent to stay within it. */
typedef struct {
    const uint8_t *w;
    const float *bias, *add;
    void *y; /* floats, or a table's cells */
    const int32_t *slot;
    int n;
    float cap;
} part;

/* What is done to a single matrix's products before they are put. */
enum { PLAIN, ADD, CAP };

/* Outputs [from, from + count) of a part. */
typedef struct {
    const part *of;
    int from, count;
} share;

static void list_rows(bs_weight_rows *list, share s, int k)
{
    for (int i = 0; i < s.count; i++)
        list->row[list->count++] = s.of->w + (size_t)(s.from + i) * bs_row_bytes(k);
}

static void fill_list(bs_weight_rows *list)
{
    for (int i = list->count; i < BS_LIST; i++) list->row[i] = list->row[list->count - 1];
}

/* Takes as much of each share as the list still holds. */
static int take(bs_weight_rows *list, share *left, share *taken, int count, int k)
{
    list->count = 0;
    for (int i = 0; i < count; i++) {
        taken[i] = left[i];
        taken[i].count = bs_min(left[i].count, BS_LIST - list->count);
        left[i].from += taken[i].count;
        left[i].count -= taken[i].count;
        list_rows(list, taken[i], k);
    }
    return list->count;
}

/* One row's sums to their part's row: a negative slot writes nothing. */
static void put(share s, const float *sums, size_t row)
{
    const int32_t *slot = s.of->slot;
    if (slot) {
        if (slot[row] < 0) return;
        row = (size_t)slot[row];
    }
    size_t place = row * (size_t)s.of->n + (size_t)s.from;
    const float *bias = s.of->bias ? s.of->bias + s.from : 0;
    const float *add = s.of->add ? s.of->add + place : 0;
    float cap = s.of->cap;
    for (int i = 0; i < s.count; i += VL) {
        int n = bs_min(VL, s.count - i);
        vf v = vf_load_n(sums + i, n);
        if (bias) v += vf_load_n(bias + i, n);
        if (add) v += vf_load_n(add + i, n);
        if (cap > 0) v = cap * vf_tanh(v / cap);
        if (slot) bs_cells_store((bs_cell *)s.of->y + place + i, v, n);
        else vf_store_n((float *)s.of->y + place + i, v, n);
    }
}

static int within(int64_t at, int end) { return at < 0 ? 0 : at < end ? (int)at : end; }

/* Sends for where a row of sums will be put: rows lie far apart, and each would be waited for alone. */
static void send_for(share s, size_t row)
{
    const int32_t *slot = s.of->slot;
    if (slot && slot[row] < 0) return;
    size_t place = (slot ? (size_t)slot[row] : row) * (size_t)s.of->n + (size_t)s.from;
    int bytes = slot ? (int)sizeof(bs_cell) : (int)sizeof(float);
    for (int at = 0; at < s.count * bytes; at += BS_LINE)
        __builtin_prefetch((uint8_t *)s.of->y + place * (size_t)bytes + at, 1, 3);
}

static void send_for_all(const share *taken, int count, size_t row)
{
    for (int i = 0; i < count; i++) send_for(taken[i], row);
}

/* What a block computes of each part. The parts' outputs are dealt in units, one part behind the other,
   so that blocks are alike however unlike the parts are. */
static void deal(const part *parts, int count, unsigned block, unsigned blocks, share *dealt)
{
    uint64_t all = 0;
    for (int i = 0; i < count; i++) all += (uint64_t)bs_ceil_div(parts[i].n, BS_UNIT);
    int64_t from = (int64_t)(all * block / blocks), to = (int64_t)(all * (block + 1) / blocks);
    for (int i = 0; i < count; i++) {
        int n = parts[i].n, units = bs_ceil_div(n, BS_UNIT);
        int first = bs_min(within(from, units) * BS_UNIT, n);
        dealt[i] = (share){parts + i, first, bs_min(within(to, units) * BS_UNIT, n) - first};
        from -= units;
        to -= units;
    }
}

static void linear_rows(const bs_activations *a, const part *parts, int count, int first, int rows,
                        unsigned block, unsigned blocks, bs_scratch *scratch)
{
    share left[BS_PARTS], taken[BS_PARTS];
    deal(parts, count, block, blocks, left);
    bs_weight_rows list;
    while (take(&list, left, taken, count, a->k)) {
        fill_list(&list);
        for (int from = first; from < rows; from += bs_chunk(a)) {
            int chunk = bs_min(bs_chunk(a), rows - from);
            for (int r = 0; r < bs_min(chunk, BS_PUT_AHEAD); r++) send_for_all(taken, count, (size_t)(from + r));
            bs_product(a, &list, (size_t)from, chunk, scratch);
            for (int r = 0; r < chunk; r++) {
                const float *sums = scratch->sums[r];
                if (r + BS_PUT_AHEAD < chunk) send_for_all(taken, count, (size_t)(from + r + BS_PUT_AHEAD));
                for (int i = 0; i < count; sums += taken[i++].count)
                    put(taken[i], sums, (size_t)(from + r));
            }
        }
    }
}

/* Rows [first, end), and which block it is of those that take them. */
typedef struct {
    int first, end;
    unsigned block, blocks;
} turn;

/* Whether two threads take half of the rows each, though both read all weights then: a row's values stay in one
   core's caches from product to product. Where the cores lie apart, lines that go over take longer than products. */
static int keep_apart(const part *parts, int count, int rows, int k)
{
    size_t outputs = 0;
    for (int i = 0; i < count; i++) outputs += (size_t)parts[i].n;
    if (bs_threads != 2) return 0;
    return rows >= BS_MANY_ROWS || (BS_PANELS && rows >= BS_APART_ROWS && outputs * bs_row_bytes(k) <= BS_APART_BYTES);
}

/* Where rows are halved, blocks take twice the outputs: of neighbours each has half of the rows, or of the first and
   the last blocks, which are different threads'. */
static turn turn_of(int rows, int apart, unsigned block, unsigned blocks)
{
    int many = rows >= BS_MANY_ROWS, unit = many ? BS_UNIT : 1, half = bs_ceil_div(rows, 2 * unit) * unit;
    if (blocks % 2 || !(many || apart)) return (turn){0, rows, block, blocks};
    unsigned pairs = blocks / 2, second = apart ? block / pairs : block % 2;
    return (turn){second ? half : 0, second ? rows : half, apart ? block % pairs : block / 2, pairs};
}

static void linear_block(const bs_activations *a, const part *parts, int count, int rows,
                         unsigned block, unsigned blocks, bs_scratch *scratch)
{
    turn t = turn_of(rows, keep_apart(parts, count, rows, a->k), block, blocks);
    linear_rows(a, parts, count, t.first, t.end, t.block, t.blocks, scratch);
}

static BS_INLINE void linear_entry(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid,
                                   void *shared, int reads, int count, int biased, int to_table,
                                   int finish)
{
    bs_cursor at = args;
    bs_activations a = bs_activations_in(&at, reads);
    part parts[BS_PARTS] = {{0}};
    for (int i = 0; i < count; i++) parts[i].w = bs_ptr(&at);
    if (biased)
        for (int i = 0; i < count; i++) parts[i].bias = bs_ptr(&at);
    if (finish == ADD) parts[0].add = bs_ptr(&at);
    for (int i = 0; i < count; i++) parts[i].y = bs_ptr(&at);
    if (to_table) parts[count - 1].slot = bs_ptr(&at);
    int rows = bs_i32(&at);
    a.k = a.pitch = bs_i32(&at);
    for (int i = 0; i < count; i++) parts[i].n = bs_i32(&at);
    if (finish == CAP) parts[0].cap = bs_f32(&at);
    linear_block(&a, parts, count, rows, block->x, grid->x, shared);
}

/* --- the gated unit ------------------------------------------------------------------------ */

static void glu_block(const bs_activations *a, const part *gate_up, int rows, int act,
                      unsigned block, bs_forms out, bs_scratch *scratch)
{
    int n = gate_up[0].n, from = BS_TILE * (int)block, count = bs_min(BS_TILE, n - from);
    bs_weight_rows list = {{0}, 0};
    for (int i = 0; i < 2; i++) list_rows(&list, (share){gate_up + i, from, count}, a->k);
    fill_list(&list);
    for (int start = 0; start < rows; start += bs_chunk(a)) {
        int chunk = bs_min(bs_chunk(a), rows - start);
        for (int r = 0; r < bs_min(chunk, BS_PUT_AHEAD); r++)
            bs_send_for_forms(out, (size_t)(start + r) * (size_t)n + (size_t)from, count);
        bs_product(a, &list, (size_t)start, chunk, scratch);
        for (int r = 0; r < chunk; r++) bs_gate(scratch->sums[r], count, act, scratch->sums[r]);
        for (int r = 0; r < chunk; r++) {
            size_t place = (size_t)(start + r) * (size_t)n + (size_t)from;
            if (r + BS_PUT_AHEAD < chunk)
                bs_send_for_forms(out, place + BS_PUT_AHEAD * (size_t)n, count);
            bs_put_forms(out, place, scratch->sums[r], count);
        }
    }
}

static BS_INLINE void glu_entry(const bs_arg *args, const bs_dim3 *block, void *shared,
                                int reads, int to_float, int to_codes)
{
    bs_cursor at = args;
    bs_activations a = bs_activations_in(&at, reads);
    part gate_up[2] = {{0}};
    gate_up[0].w = bs_ptr(&at);
    gate_up[1].w = bs_ptr(&at);
    bs_forms out = bs_forms_out(&at, to_float, to_codes);
    int rows = bs_i32(&at);
    a.k = a.pitch = bs_i32(&at);
    gate_up[0].n = gate_up[1].n = bs_i32(&at);
    int act = bs_i32(&at);
    glu_block(&a, gate_up, rows, act, block->x, out, shared);
}

/* --- entries ------------------------------------------------------------------------------- */

#define X "in buffer<f32>, "
#define XQ "in buffer<i8>, in buffer<f32>, in buffer<i32>, "
#define W "in buffer<" BS_W ">, "
#define BIAS "in buffer<f32>, "
#define ADDEND "in buffer<f32>, "
#define Y "out buffer<f32>, "
#define YQ "out buffer<i8>, out buffer<f32>, out buffer<i32>, "
#define TABLE "inout state, in buffer<i32>, "

#define LINEAR(family, suffix, types, reads, count, biased, to_table)                  \
    FINISHED(family, suffix, types, reads, count, biased, to_table, PLAIN)

#define FINISHED(family, suffix, types, reads, count, biased, to_table, finish)        \
    BS_KERNEL(BS_ENTRY(family, suffix), types)                                             \
    {                                                                                      \
        linear_entry(args, block, grid, shared, reads, count, biased, to_table, finish); \
    }

#define LINEAR_FORMS(form, x, reads)                                                               \
    LINEAR(linear##form, , x W Y "i32, i32, i32", reads, 1, 0, 0)                                  \
    LINEAR(linear##form, _rows, x W TABLE "i32, i32, i32", reads, 1, 0, 1)                         \
    LINEAR(linear##form, _b, x W BIAS Y "i32, i32, i32", reads, 1, 1, 0)                           \
    LINEAR(linear##form, _b_rows, x W BIAS TABLE "i32, i32, i32", reads, 1, 1, 1)                  \
    LINEAR(parts2##form, , x W W Y Y "i32, i32, i32, i32", reads, 2, 0, 0)                         \
    LINEAR(parts2##form, _rows, x W W Y TABLE "i32, i32, i32, i32", reads, 2, 0, 1)                \
    LINEAR(parts2##form, _b, x W W BIAS BIAS Y Y "i32, i32, i32, i32", reads, 2, 1, 0)             \
    LINEAR(parts2##form, _b_rows, x W W BIAS BIAS Y TABLE "i32, i32, i32, i32", reads, 2, 1, 1)    \
    LINEAR(parts3##form, , x W W W Y Y Y "i32, i32, i32, i32, i32", reads, 3, 0, 0)                \
    LINEAR(parts3##form, _rows, x W W W Y Y TABLE "i32, i32, i32, i32, i32", reads, 3, 0, 1)       \
    LINEAR(parts3##form, _b, x W W W BIAS BIAS BIAS Y Y Y "i32, i32, i32, i32, i32", reads, 3, 1, 0) \
    LINEAR(parts3##form, _b_rows, x W W W BIAS BIAS BIAS Y Y TABLE "i32, i32, i32, i32, i32",          \
           reads, 3, 1, 1)                                                                         \
    FINISHED(linear##form, _add, x W ADDEND Y "i32, i32, i32", reads, 1, 0, 0, ADD)                \
    FINISHED(linear##form, _b_add, x W BIAS ADDEND Y "i32, i32, i32", reads, 1, 1, 0, ADD)         \
    FINISHED(linear##form, _cap, x W Y "i32, i32, i32, f32", reads, 1, 0, 0, CAP)                  \
    LINEAR(parts4##form, , x W W W W Y Y Y Y "i32, i32, i32, i32, i32, i32", reads, 4, 0, 0)

#define GLU(form, suffix, types, reads, to_float, to_codes)                \
    BS_KERNEL(BS_ENTRY(glu##form, suffix), types "i32, i32, i32, i32")         \
    {                                                                          \
        BS_UNUSED(grid);                                                       \
        glu_entry(args, block, shared, reads, to_float, to_codes);         \
    }

#define GLU_FORMS(form, x, reads)             \
    GLU(form, , x W W Y, reads, 1, 0)         \
    GLU(form, _q, x W W YQ, reads, 0, 1)      \
    GLU(form, _fq, x W W Y YQ, reads, 1, 1)

#if !BS_PANELS
LINEAR_FORMS(_, X, BS_AS_FLOATS)
GLU_FORMS(_, X, BS_AS_FLOATS)
#endif
#if !BS_DENSE
LINEAR_FORMS(_q_, XQ, BS_AS_CODES)
GLU_FORMS(_q_, XQ, BS_AS_CODES)
#elif BS_FORMAT == BS_BF16
LINEAR_FORMS(_r_, X, BS_MAY_ROUND)
GLU_FORMS(_r_, X, BS_MAY_ROUND)
#endif
