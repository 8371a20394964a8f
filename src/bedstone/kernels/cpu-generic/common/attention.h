/* Causal attention of a group's heads, over rows of keys and values wherever they lie.
 *
 * Positions go by in tiles of 64 that begin at multiples of 64, with a running maximum and sum. A
 * tile's keys are laid once as [dk][64], so a vector holds positions and the heads of all four rows
 * share it; values are read as they lie, and heads of one row share them. What a row computes is
 * fixed by its own position: rows beside it, or none, change no bit of it.
 */
#ifndef BS_ATTENTION_H
#define BS_ATTENTION_H

#include <part.h>
#include <quantize.h>

#define TILE 64
#define STRIP (4 * VL)                /* positions of a score tile kept in registers */
#define SCRATCH (226 * 1024)
#define QUERIES 128                   /* of one pass over the positions */

/* Rows by position: of a sequence's pages, or one after another; each holds every group's values. */
typedef struct {
    const float *x;
    const int32_t *pages; /* null: position t is row t */
    int page;
    size_t pitch, unit;   /* values from a row to the next, from a group to the next */
} bs_rows;

/* A key is its first `own` values in `k` and the others in `k_tail`; so is a query. */
typedef struct {
    const float *q, *q_tail;
    bs_rows k, k_tail, v;
    const int32_t *position;
    const float *gate; /* null: none */
    bs_window from_gate;
    bs_forms out;
    int rows, heads, groups, dk, dv, own, q_pitch, q_tail_pitch, window;
    float scale, softcap;
} bs_attention;

/* One row's query of one head, and its running state. */
typedef struct {
    const float *q, *q_tail;
    float *scores;  /* [TILE] */
    float *acc;     /* [dv] */
    int row, head, first, last; /* first and last position it sees */
    float top, sum;
} query;

static BS_INLINE const float *row_of(const bs_rows *r, int t, int group)
{
    size_t row = r->pages ? (size_t)r->pages[t / r->page] * (size_t)r->page + (size_t)(t % r->page) : (size_t)t;
    return r->x + row * r->pitch + (size_t)group * r->unit;
}

/* The rows of positions [from, from + TILE). Those past `last` repeat it and are masked later. */
static void find_rows(const bs_rows *r, int group, int from, int last, const float *rows[TILE])
{
    const float *row = row_of(r, from, group);
    int left = r->pages ? r->page - from % r->page : TILE;
    for (int t = 0; t < TILE; t++) {
        rows[t] = row;
        if (from + t >= last) continue;
        if (--left > 0) {
            row += r->pitch;
        } else {
            row = row_of(r, from + t + 1, group);
            left = r->pages ? r->page : TILE;
        }
    }
}

/* Lines of the next tile's rows that are yet to be sent for; none where `t` is TILE. Rows of a group lie
   apart, as no stream of memory goes by, and a core that sends for a whole tile at once waits for it. */
typedef struct {
    const float *const *rows;
    int width, t, at;
} ahead;

#define LINE (64 / (int)sizeof(float))
#define SENT 4 /* lines at a time: a tile's are all sent for by the first queries over the one before */

static BS_INLINE void send(ahead *next)
{
    for (int i = 0; i < SENT && next->t < TILE; i++) {
        __builtin_prefetch(next->rows[next->t] + next->at, 0, 2);
        next->at += LINE;
        if (next->at < next->width) continue;
        next->at = 0;
        next->t++;
    }
}

/* `width` values of rows as [width][TILE]. */
static void lay_keys(const float *const rows[TILE], int width, float *keys)
{
    for (int t = 0; t < TILE; t += VL) {
        int d = 0;
        for (; d + VL <= width; d += VL) vf_transpose(rows + t, d, keys + d * TILE + t, TILE);
        for (; d < width; d++)
            for (int i = 0; i < VL; i++) keys[d * TILE + t + i] = rows[t + i][d];
    }
}

/* A strip of scores gains the products of `width` values of its keys. */
static BS_INLINE void add_products(const query *queries, const int count, const int tail,
                                   const float *key, int width, ahead *next, vf acc[BS_QUERIES][4])
{
    for (int d = 0; d < width; d++, key += TILE) {
        vf k[4];
        send(next);
#pragma GCC unroll 8
        for (int j = 0; j < 4; j++) k[j] = vf_load(key + j * VL);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            vf q = vf_set((tail ? queries[i].q_tail : queries[i].q)[d]);
#pragma GCC unroll 8
            for (int j = 0; j < 4; j++) acc[i][j] = vf_fma(q, k[j], acc[i][j]);
        }
    }
}

/* Raw scores of `count` queries. */
static BS_INLINE void score_some(const bs_attention *a, const query *queries, const int count,
                                 const float *keys, ahead next[2])
{
    for (int t = 0; t < TILE; t += STRIP) {
        vf acc[BS_QUERIES][4];
#pragma GCC unroll 8
        for (int i = 0; i < count; i++)
#pragma GCC unroll 8
            for (int j = 0; j < 4; j++) acc[i][j] = (vf){0};
        add_products(queries, count, 0, keys + t, a->own, next, acc);
        add_products(queries, count, 1, keys + a->own * TILE + t, a->dk - a->own, next + 1, acc);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++)
#pragma GCC unroll 8
            for (int j = 0; j < 4; j++) vf_store(queries[i].scores + t + j * VL, acc[i][j]);
    }
}

static void score(const bs_attention *a, const query *queries, int count, const float *keys,
                  ahead next[2])
{
    switch (count) {
    case 1: score_some(a, queries, 1, keys, next); break;
    case 2: score_some(a, queries, 2, keys, next); break;
#if BS_QUERIES == 4
    case 3: score_some(a, queries, 3, keys, next); break;
    default: score_some(a, queries, 4, keys, next); break;
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
                                    const float *const *values, int d, int first, int last,
                                    ahead *next)
{
    vf acc[BS_QUERIES][4];
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) acc[i][j] = vf_load(queries[i].acc + d + j * VL);
    for (int t = first; t <= last; t++) {
        vf v[4];
        send(next);
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
                                 int dv, int first, int last, ahead *next)
{
    int d = 0;
    for (; d + 4 * VL <= dv; d += 4 * VL) weigh_columns(queries, count, 4, values, d, first, last, next);
    for (; d + VL <= dv; d += VL) weigh_columns(queries, count, 1, values, d, first, last, next);
    for (int i = 0; d < dv && i < count; i++)
        for (int t = first; t <= last; t++)
            for (int e = d; e < dv; e++) queries[i].acc[e] += queries[i].scores[t] * values[t][e];
}

static void weigh(const query *queries, int count, const float *const *values, int dv, int first,
                  int last, ahead *next)
{
    switch (count) {
    case 1: weigh_some(queries, 1, values, dv, first, last, next); break;
    case 2: weigh_some(queries, 2, values, dv, first, last, next); break;
#if BS_QUERIES == 4
    case 3: weigh_some(queries, 3, values, dv, first, last, next); break;
    default: weigh_some(queries, 4, values, dv, first, last, next); break;
#endif
    }
}

/* Queries over one tile of positions; those that see the same part of it go together. */
static void visit(const bs_attention *a, query *queries, int count, int from, const float *keys,
                  const float *const *values, ahead next[3])
{
    for (int i = 0; i < count; i += BS_QUERIES)
        score(a, queries + i, bs_min(BS_QUERIES, count - i), keys, next);
    int together = 1;
    for (int i = 0; i < count; i += together) {
        int first = bs_max(queries[i].first - from, 0), last = bs_min(queries[i].last - from, TILE - 1);
        for (together = 1; together < BS_QUERIES && i + together < count; together++) {
            const query *next = queries + i + together;
            if (bs_max(next->first - from, 0) != first || bs_min(next->last - from, TILE - 1) != last) break;
        }
        if (first > last) continue;
        for (int j = 0; j < together; j++) soften(a, queries + i + j, from);
        weigh(queries + i, together, values, a->dv, first, last, next + 2);
    }
}

/* Where the keys, their tails and the values of one tile of positions lie. */
typedef struct {
    const float *keys[TILE], *tails[TILE], *values[TILE];
} tile;

static void find_tile(const bs_attention *a, int group, int from, int last, tile *found)
{
    find_rows(&a->k, group, from, last, found->keys);
    if (a->own < a->dk) find_rows(&a->k_tail, 0, from, last, found->tails);
    find_rows(&a->v, group, from, last, found->values);
}

/* Queries of rows of one sequence, from the first position any of them sees to the last. */
static void attend(const bs_attention *a, int group, query *queries, int count, float *keys)
{
    int first = queries[0].first, last = queries[0].last, odd = 0;
    for (int i = 1; i < count; i++) {
        first = bs_min(first, queries[i].first);
        last = bs_max(last, queries[i].last);
    }
    tile tiles[2];
    int from = first / TILE * TILE;
    if (from <= last) find_tile(a, group, from, last, &tiles[0]);
    for (; from <= last; from += TILE, odd = !odd) {
        tile *following = &tiles[!odd];
        int sent = from + TILE <= last ? 0 : TILE;
        if (!sent) find_tile(a, group, from + TILE, last, following);
        ahead next[3] = {{following->keys, a->own, sent, 0},
                         {following->tails, a->dk - a->own, sent, 0},
                         {following->values, a->dv, sent, 0}};
        lay_keys(tiles[odd].keys, a->own, keys);
        if (a->own < a->dk) lay_keys(tiles[odd].tails, a->dk - a->own, keys + a->own * TILE);
        visit(a, queries, count, from, keys, tiles[odd].values, next);
    }
}

static void finish(const bs_attention *a, const query *q)
{
    size_t place = ((size_t)q->row * (size_t)a->heads + (size_t)q->head) * (size_t)a->dv;
    size_t gate = a->gate ? bs_window_at(a->from_gate, (size_t)q->row, q->head * a->dv) : 0;
    /* a row before the first position sees nothing: its sum is empty, its output zero */
    float whole = q->last < q->first ? 1.0f : q->sum;
    for (int d = 0; d < a->dv; d += VL) {
        int n = bs_min(VL, a->dv - d);
        vf v = vf_load_n(q->acc + d, n) / whole;
        if (a->gate) v *= vf_sigmoid(vf_load_n(a->gate + gate + d, n));
        vf_store_n(q->acc + d, v, n);
        if (a->out.y) vf_store_n(a->out.y + place + (size_t)d, v, n);
    }
}

/* Heads of one row lie side by side, here as in the output, so a quantized block may span two. */
static void finish_all(const bs_attention *a, const query *queries, int count)
{
    for (int i = 0; i < count; i++) finish(a, queries + i);
    if (!a->out.q.codes) return;
    for (int i = 0, end = 0; i < count; i = end) {
        while (end < count && queries[end].row == queries[i].row) end++;
        size_t place = ((size_t)queries[i].row * (size_t)a->heads + (size_t)queries[i].head) * (size_t)a->dv;
        bs_quantize_row(queries[i].acc, (end - i) * a->dv, bs_quantized_at(a->out.q, place));
    }
}

/* Scratch: keys [dk][TILE], then of each query its scores and its output so far. */
static void start(const bs_attention *a, query *q, int row, int head, float *memory, int index, int count)
{
    q->row = row;
    q->head = head;
    size_t place = (size_t)row * (size_t)a->heads + (size_t)head;
    q->q = a->q + place * (size_t)a->q_pitch;
    q->q_tail = a->q_tail + place * (size_t)a->q_tail_pitch;
    q->scores = memory + index * TILE;
    q->acc = memory + count * TILE + index * a->dv;
    q->last = a->position[row];
    q->first = a->window > 0 ? bs_max(q->last - a->window + 1, 0) : 0;
    q->top = -BS_INFINITY;
    q->sum = 0.0f;
    memset(q->acc, 0, sizeof(float) * (size_t)a->dv);
}

/* Rows [row, row + rows) of one sequence; whole rows at a time where they fit. */
static void attend_rows(const bs_attention *a, int group, int row, int rows, float *scratch)
{
    int each = a->heads / a->groups, keys = TILE * a->dk;
    int fit = (SCRATCH / (int)sizeof(float) - keys) / (TILE + a->dv);
    fit = bs_min(fit, QUERIES);
    if (fit > each) fit -= fit % each;
    for (int done = 0; done < rows * each; done += fit) {
        query queries[QUERIES];
        int count = bs_min(fit, rows * each - done);
        for (int i = 0; i < count; i++)
            start(a, queries + i, row + (done + i) / each, group * each + (done + i) % each,
                  scratch + keys, i, count);
        attend(a, group, queries, count, scratch);
        finish_all(a, queries, count);
    }
}

#endif
