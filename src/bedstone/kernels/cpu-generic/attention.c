/* attention: causal, over a paged table; a block is four rows of one group of heads.
 *
 * Positions go by in tiles of 64 that begin at multiples of 64, with a running maximum and sum. A
 * tile's keys are laid once as [dk][64], so a vector holds positions and the heads of all four rows
 * share it; values are read as they lie, and heads of one row share them. What a row computes is
 * fixed by its own position: rows beside it, or none, change no bit of it.
 */
#include <quantize.h>

#define ROWS 4
#define TILE 64
#define STRIP (4 * VL)                /* positions of a score tile kept in registers */
#define SCRATCH (226 * 1024)
#define QUERIES 128                   /* of one pass over the positions */

typedef struct {
    const float *q, *k, *v;
    const int32_t *position, *pages;
    float *y;
    bs_quantized out;
    int rows, heads, groups, dk, dv, page, pages_width, stride, window;
    float scale, softcap;
} bs_attention;

/* One row's query of one head, and its running state. */
typedef struct {
    const float *q;
    float *scores;  /* [TILE] */
    float *acc;     /* [dv] */
    int row, head, first, last; /* first and last position it sees */
    float top, sum;
} query;

static BS_INLINE const float *row_of(const float *table, const int32_t *pages, int page, int t, int width)
{
    return table + ((size_t)pages[t / page] * (size_t)page + (size_t)(t % page)) * (size_t)width;
}

/* Keys [from, from + TILE) as [dk][TILE]; positions past `last` repeat it and are masked later. */
static void lay_keys(const bs_attention *a, const int32_t *pages, int group, int from, int last, float *keys)
{
    int width = a->groups * a->dk;
    for (int t = 0; t < TILE; t += VL) {
        const float *rows[VL];
        for (int i = 0; i < VL; i++)
            rows[i] = row_of(a->k, pages, a->page, bs_min(from + t + i, last), width) + group * a->dk;
        int d = 0;
        for (; d + VL <= a->dk; d += VL) vf_transpose(rows, d, keys + d * TILE + t, TILE);
        for (; d < a->dk; d++)
            for (int i = 0; i < VL; i++) keys[d * TILE + t + i] = rows[i][d];
    }
}

/* Raw scores of `count` queries. */
static BS_INLINE void score_some(const query *queries, const int count, const float *keys, int dk)
{
    for (int t = 0; t < TILE; t += STRIP) {
        vf acc[BS_QUERIES][4];
#pragma GCC unroll 8
        for (int i = 0; i < count; i++)
#pragma GCC unroll 8
            for (int j = 0; j < 4; j++) acc[i][j] = (vf){0};
        for (int d = 0; d < dk; d++) {
            const float *key = keys + d * TILE + t;
            vf k[4];
#pragma GCC unroll 8
            for (int j = 0; j < 4; j++) k[j] = vf_load(key + j * VL);
#pragma GCC unroll 8
            for (int i = 0; i < count; i++)
#pragma GCC unroll 8
                for (int j = 0; j < 4; j++)
                    acc[i][j] = vf_fma(vf_set(queries[i].q[d]), k[j], acc[i][j]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < count; i++)
#pragma GCC unroll 8
            for (int j = 0; j < 4; j++) vf_store(queries[i].scores + t + j * VL, acc[i][j]);
    }
}

static void score(const query *queries, int count, const float *keys, int dk)
{
    switch (count) {
    case 1: score_some(queries, 1, keys, dk); break;
    case 2: score_some(queries, 2, keys, dk); break;
#if BS_QUERIES == 4
    case 3: score_some(queries, 3, keys, dk); break;
    default: score_some(queries, 4, keys, dk); break;
#endif
    }
}

/* Scores to weights e^(s - top), unseen positions to 0; the sums so far shrink to the new top. */
static void soften(const bs_attention *a, query *q, int from)
{
    vf top = vf_set(-BS_INFINITY), sum = {0};
    vi lane;
    for (int i = 0; i < VL; i++) lane[i] = i;
    for (int t = 0; t < TILE; t += VL) {
        vf s = vf_load(q->scores + t) * a->scale;
        if (a->softcap > 0.0f) s = a->softcap * vf_tanh(s / a->softcap);
        vi at = lane + (from + t);
        s = vf_select((at >= q->first) & (at <= q->last), s, vf_set(-BS_INFINITY));
        top = vf_larger(s, top);
        vf_store(q->scores + t, s);
    }
    float highest = vf_max(top);
    if (q->top > highest) highest = q->top;
    for (int t = 0; t < TILE; t += VL) {
        vf weight = vf_exp(vf_load(q->scores + t) - highest);
        sum += weight;
        vf_store(q->scores + t, weight);
    }
    float shrink = vf_exp(vf_set(q->top - highest))[0];
    q->top = highest;
    q->sum = q->sum * shrink + vf_sum(sum);
    for (int d = 0; d < a->dv; d += VL) {
        int n = bs_min(VL, a->dv - d);
        vf_store_n(q->acc + d, vf_load_n(q->acc + d, n) * shrink, n);
    }
}

/* `count` queries that see the same positions of the tile gain their weighted values of columns
   [d, d + columns * VL). */
static BS_INLINE void weigh_columns(const query *queries, const int count, const int columns,
                                    const float *const *values, int d, int first, int last)
{
    vf acc[BS_QUERIES][4];
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) acc[i][j] = vf_load(queries[i].acc + d + j * VL);
    for (int t = first; t <= last; t++) {
        vf v[4];
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) v[j] = vf_load(values[t] + d + j * VL);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++)
#pragma GCC unroll 8
            for (int j = 0; j < columns; j++)
                acc[i][j] = vf_fma(vf_set(queries[i].scores[t]), v[j], acc[i][j]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) vf_store(queries[i].acc + d + j * VL, acc[i][j]);
}

static BS_INLINE void weigh_some(const query *queries, const int count, const float *const *values,
                                 int dv, int first, int last)
{
    int d = 0;
    for (; d + 4 * VL <= dv; d += 4 * VL) weigh_columns(queries, count, 4, values, d, first, last);
    for (; d + VL <= dv; d += VL) weigh_columns(queries, count, 1, values, d, first, last);
    for (int i = 0; d < dv && i < count; i++)
        for (int t = first; t <= last; t++)
            for (int e = d; e < dv; e++) queries[i].acc[e] += queries[i].scores[t] * values[t][e];
}

static void weigh(const query *queries, int count, const float *const *values, int dv, int first,
                  int last)
{
    switch (count) {
    case 1: weigh_some(queries, 1, values, dv, first, last); break;
    case 2: weigh_some(queries, 2, values, dv, first, last); break;
#if BS_QUERIES == 4
    case 3: weigh_some(queries, 3, values, dv, first, last); break;
    default: weigh_some(queries, 4, values, dv, first, last); break;
#endif
    }
}

/* Queries over one tile of positions; those that see the same part of it go together. */
static void visit(const bs_attention *a, query *queries, int count, int from, const float *keys,
                  const float *const *values)
{
    for (int i = 0; i < count; i += BS_QUERIES)
        score(queries + i, bs_min(BS_QUERIES, count - i), keys, a->dk);
    int together = 1;
    for (int i = 0; i < count; i += together) {
        int first = bs_max(queries[i].first - from, 0), last = bs_min(queries[i].last - from, TILE - 1);
        for (together = 1; together < BS_QUERIES && i + together < count; together++) {
            const query *next = queries + i + together;
            if (bs_max(next->first - from, 0) != first || bs_min(next->last - from, TILE - 1) != last) break;
        }
        if (first > last) continue;
        for (int j = 0; j < together; j++) soften(a, queries + i + j, from);
        weigh(queries + i, together, values, a->dv, first, last);
    }
}

/* Queries of rows that share their pages, from the first position any of them sees to the last. */
static void attend(const bs_attention *a, const int32_t *pages, int group, query *queries, int count,
                   float *keys)
{
    int first = queries[0].first, last = queries[0].last;
    for (int i = 1; i < count; i++) {
        first = bs_min(first, queries[i].first);
        last = bs_max(last, queries[i].last);
    }
    for (int from = first / TILE * TILE; from <= last; from += TILE) {
        const float *values[TILE];
        for (int t = 0; t < TILE; t++)
            values[t] = row_of(a->v, pages, a->page, bs_min(from + t, last), a->groups * a->dv)
                        + group * a->dv;
        lay_keys(a, pages, group, from, last, keys);
        visit(a, queries, count, from, keys, values);
    }
}

static void finish(const bs_attention *a, const query *q)
{
    size_t place = ((size_t)q->row * (size_t)a->heads + (size_t)q->head) * (size_t)a->dv;
    /* a row before the first position sees nothing: its sum is empty, its output zero */
    float whole = q->last < q->first ? 1.0f : q->sum;
    for (int d = 0; d < a->dv; d += VL) {
        int n = bs_min(VL, a->dv - d);
        vf v = vf_load_n(q->acc + d, n) / whole;
        vf_store_n(q->acc + d, v, n);
        if (a->y) vf_store_n(a->y + place + (size_t)d, v, n);
    }
}

/* Heads of one row lie side by side, here as in the output, so a quantized block may span two. */
static void finish_all(const bs_attention *a, const query *queries, int count)
{
    for (int i = 0; i < count; i++) finish(a, queries + i);
    if (!a->out.codes) return;
    for (int i = 0, end = 0; i < count; i = end) {
        while (end < count && queries[end].row == queries[i].row) end++;
        size_t place = ((size_t)queries[i].row * (size_t)a->heads + (size_t)queries[i].head) * (size_t)a->dv;
        bs_quantize_row(queries[i].acc, (end - i) * a->dv, bs_quantized_at(a->out, place));
    }
}

/* Scratch: keys [dk][TILE], then of each query its scores and its output so far. */
static void start(const bs_attention *a, query *q, int row, int head, float *memory, int index, int count)
{
    q->row = row;
    q->head = head;
    q->q = a->q + ((size_t)row * (size_t)a->heads + (size_t)head) * (size_t)a->dk;
    q->scores = memory + index * TILE;
    q->acc = memory + count * TILE + index * a->dv;
    q->last = a->position[row];
    q->first = a->window > 0 ? bs_max(q->last - a->window + 1, 0) : 0;
    q->top = -BS_INFINITY;
    q->sum = 0.0f;
    memset(q->acc, 0, sizeof(float) * (size_t)a->dv);
}

/* Rows [row, row + rows) that share their pages; whole rows at a time where they fit. */
static void attend_rows(const bs_attention *a, int group, int row, int rows, float *scratch)
{
    int each = a->heads / a->groups, keys = TILE * a->dk;
    int fit = (SCRATCH / (int)sizeof(float) - keys) / (TILE + a->dv);
    fit = bs_min(fit, QUERIES);
    if (fit > each) fit -= fit % each;
    const int32_t *pages = a->pages + (size_t)row * (size_t)a->stride * (size_t)a->pages_width;
    for (int done = 0; done < rows * each; done += fit) {
        query queries[QUERIES];
        int count = bs_min(fit, rows * each - done);
        for (int i = 0; i < count; i++)
            start(a, queries + i, row + (done + i) / each, group * each + (done + i) % each,
                  scratch + keys, i, count);
        attend(a, pages, group, queries, count, scratch);
        finish_all(a, queries, count);
    }
}

static BS_INLINE void attention_entry(const bs_arg *args, const bs_dim3 *block, void *shared,
                                      int to_float, int to_codes)
{
    bs_cursor at = args;
    bs_attention a = {0};
    a.q = bs_ptr(&at);
    a.k = bs_ptr(&at);
    a.v = bs_ptr(&at);
    a.position = bs_ptr(&at);
    a.pages = bs_ptr(&at);
    if (to_float) a.y = bs_ptr(&at);
    if (to_codes) a.out = bs_quantized_out(&at);
    a.rows = bs_i32(&at);
    a.heads = bs_i32(&at);
    a.groups = bs_i32(&at);
    a.dk = bs_i32(&at);
    a.dv = bs_i32(&at);
    a.page = bs_i32(&at);
    a.pages_width = bs_i32(&at);
    a.stride = bs_i32(&at);
    a.scale = bs_f32(&at);
    a.window = bs_i32(&at);
    a.softcap = bs_f32(&at);
    int first = ROWS * (int)block->x, rows = bs_min(ROWS, a.rows - first), group = (int)block->y;
    int step = a.stride ? 1 : ROWS;
    for (int r = 0; r < rows; r += step)
        attend_rows(&a, group, first + r, bs_min(step, rows - r), shared);
}

#define F "out buffer<f32>, "
#define Q "out buffer<i8>, out buffer<f32>, out buffer<i32>, "
#define ATTENTION(suffix, outs, to_float, to_codes)                                               \
    BS_KERNEL(attention##suffix,                                                                  \
              "in buffer<f32>, in state, in state, in buffer<i32>, in buffer<i32>, " outs         \
              "i32, i32, i32, i32, i32, i32, i32, i32, f32, i32, f32")                            \
    {                                                                                             \
        BS_UNUSED(grid);                                                                          \
        attention_entry(args, block, shared, to_float, to_codes);                                 \
    }

ATTENTION(, F, 1, 0)
ATTENTION(_q, Q, 0, 1)
ATTENTION(_fq, F Q, 1, 1)
