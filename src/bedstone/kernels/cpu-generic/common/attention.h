/* Causal attention of groups of heads, over rows of keys and values wherever they lie.
 *
 * Positions go by in pieces that begin at multiples of PIECE. The scores of a piece share a maximum;
 * its weights, their sum and the weighted values are made of the piece alone, and then join those of
 * the pieces before. So pieces may be made one after another or apart, and what a row computes is
 * fixed by its own position: rows beside it, or none, change no bit of it.
 */
#ifndef BS_ATTENTION_H
#define BS_ATTENTION_H

#include <attend.h>
#include <part.h>
#include <quantize.h>

#define SCRATCH (226 * 1024)
#define QUERIES 128 /* of one pass over the positions */
#define FEW 8       /* queries of a group that read values where they lie */

/* Rows by position: of a sequence's pages, or one after another; each holds every group's values. */
typedef struct {
    const void *x;
    const int32_t *pages; /* null: position t is row t */
    int page, cells;      /* whether they are a table's */
    size_t pitch, unit;   /* values from a row to the next, from a group to the next */
} bs_rows;

/* A key is its first `own` values in `k` and the others in `k_tail`; so is a query. */
typedef struct {
    const float *q, *q_tail;
    bs_rows k, k_tail, v;
    const int32_t *position;
    const float *gate; /* null: none */
    float *parts;      /* of every row and piece: results of all heads, then a maximum and a sum of each */
    bs_window from_gate;
    bs_forms out;
    int rows, heads, groups, dk, dv, own, q_pitch, q_tail_pitch, window;
    float scale, softcap;
} bs_attention;

/* Queries of heads from group `group` on: `each` of a group lie side by side. */
typedef struct {
    query all[QUERIES];
    int count, each, group, laid; /* floats that a query takes which is laid anew */
    float *keys;   /* of a slab */
    float *values; /* [PIECE / UNIT][COLUMNS] */
} bs_queries;

static BS_INLINE const uint8_t *row_of(const bs_rows *r, int t)
{
    size_t row = (size_t)t;
    if (r->pages) row = (size_t)r->pages[t / r->page] * (size_t)r->page + (size_t)(t % r->page);
    return (const uint8_t *)r->x + row * r->pitch * (size_t)bs_value_bytes(r->cells);
}

/* The rows of positions [from, from + count). Those past `last` repeat it and are masked later. */
static void find_rows(const bs_rows *r, int from, int count, int last, const uint8_t **rows)
{
    size_t pitch = r->pitch * (size_t)bs_value_bytes(r->cells);
    const uint8_t *row = row_of(r, from);
    int left = r->pages ? r->page - from % r->page : count;
    for (int t = 0; t < count; t++) {
        rows[t] = row;
        if (from + t >= last) continue;
        if (--left > 0) {
            row += pitch;
        } else {
            row = row_of(r, from + t + 1);
            left = r->pages ? r->page : count;
        }
    }
}

/* Scores of a piece to weights e^(s - top), unseen positions to 0, and their sum. */
static void soften(const bs_attention *a, query *q, int from)
{
    int begin = bs_max(q->first - from, 0) / VL * VL, end = bs_min(q->last - from + 1, PIECE);
    vf top = vf_set(-BS_INFINITY), sum = {0};
    vi lane;
    for (int i = 0; i < VL; i++) lane[i] = i;
    for (int t = begin; t < end; t += VL) {
        vf s = vf_load(q->scores + t) * a->scale;
        if (a->softcap > 0.0f) s = a->softcap * vf_tanh(s / a->softcap);
        vi at = lane + (from + t);
        s = vf_select((at >= q->first) & (at <= q->last), s, vf_set(-BS_INFINITY));
        top = vf_larger(s, top);
        vf_store(q->scores + t, s);
    }
    q->top = vf_max(top);
    for (int t = begin; t < end; t += VL) {
        vf weight = vf_exp(vf_load(q->scores + t) - q->top);
        sum += weight;
        vf_store(q->scores + t, weight);
    }
    q->sum = vf_sum(sum);
    lay_weights(q->scores, begin, end);
}

/* What the pieces before came to gains one more. */
static void join(float *acc, float *top, float *sum, const float *more, float more_top, float more_sum,
                 int dv)
{
    float highest = more_top > *top ? more_top : *top;
    vf by = vf_set(*top - highest);
    by[1] = more_top - highest;
    by = vf_exp(by);
    *top = highest;
    *sum = *sum * by[0] + more_sum * by[1];
    for (int d = 0; d < dv; d += VL) {
        int n = bs_min(VL, dv - d);
        vf before = vf_load_n(acc + d, n) * by[0];
        vf_store_n(acc + d, vf_fma(vf_load_n(more + d, n), vf_set(by[1]), before), n);
    }
}

/* Where the rows of one piece's positions lie. */
typedef struct {
    const uint8_t *k[PIECE], *tail[PIECE], *v[PIECE];
} found;

/* Lines of rows that as many queries as those of `of` read, of groups from `group` on and positions [begin, end)
   of a piece. */
static ahead lines_of(const bs_queries *of, int group, const bs_rows *table, const uint8_t *const *rows,
                      int begin, int end)
{
    int unit = (int)table->unit * bs_value_bytes(table->cells), at = group * unit, width = of->count / of->each * unit;
    return (ahead){rows, bs_min(end, PIECE), at, at + width, begin / SLAB * SLAB, at, 0};
}

/* Scores of all queries at positions [begin, end) of the piece from `from` on. */
static void score_piece(const bs_attention *a, bs_queries *of, const found *rows, int from, int begin,
                        int end)
{
    int groups = of->count / of->each, tail = a->dk - a->own;
    for (int slab = begin / SLAB * SLAB; slab < end; slab += SLAB) {
        ahead next = slab + SLAB < end ? lines_of(of, of->group, &a->k, rows->k, slab + SLAB, slab + 2 * SLAB)
                                       : lines_of(of, of->group, &a->v, rows->v, begin, bs_min(begin + SLAB, end));
        for (int g = 0; g < groups; g++) {
            query *queries = of->all + g * of->each;
            size_t group = (size_t)(of->group + g), at = group * a->k.unit, at_tail = group * a->k_tail.unit;
            int few = of->each <= BS_QUERIES && BS_LIES(a->k.cells), own = LAID(a->own);
            float *tails = of->keys + SLAB * own;
            if (!few) {
                lay_keys(rows->k + slab, a->k.cells, at, a->own, of->keys, &next);
                if (tail) lay_keys(rows->tail + slab, a->k_tail.cells, at_tail, tail, tails, &next);
            }
            for (int t = 0; t < SLAB; t += VL) {
                key_block k = {of->keys + t * own, tails + t * LAID(tail), rows->k + slab + t,
                               rows->tail + slab + t, at, at_tail, a->own, tail};
                for (int i = 0; i < of->each; i += BS_QUERIES) {
                    int count = bs_min(BS_QUERIES, of->each - i), seen = 0;
                    for (int j = i; j < i + count; j++)
                        seen |= queries[j].first < from + slab + t + VL && queries[j].last >= from + slab + t;
                    if (!seen) continue;
                    if (few) score_lying(queries + i, count, &k, slab + t, &next);
                    else score(queries + i, count, &k, slab + t);
                }
            }
        }
    }
}

/* Many queries of one group: each tile of columns is laid once for all. */
static void weigh_laid(const bs_attention *a, bs_queries *of, const found *rows, int from, int begin,
                       int end)
{
    size_t at = (size_t)of->group * a->v.unit;
    begin &= -UNIT;
    for (int d = 0; d < a->dv; d += COLUMNS) {
        int width = bs_min(COLUMNS, a->dv - d);
        values laid = {0, 0, of->values};
        for (int t = begin; t < end; t += UNIT)
            for (int e = 0; e < width; e += VL) {
                int n = bs_min(VL, width - e);
                vf v = BS_CELLS(a->v.cells) ? value_of(rows->v, 1, t, at + (size_t)(d + e), n)
                                            : value_of(rows->v, 0, t, at + (size_t)(d + e), n);
                vf_store(of->values + t / UNIT * COLUMNS + e, v);
            }
        for (int i = 0; i < of->count; i += BS_QUERIES)
            weigh(of->all + i, bs_min(BS_QUERIES, of->count - i), from, begin, end, &laid, d, width, 0);
    }
}

/* Few queries of each group: values are read where they lie, in the order of memory. */
static void weigh_lying(const bs_attention *a, bs_queries *of, const found *rows, int from, int begin,
                        int end, ahead *then)
{
    int groups = of->count / of->each;
    for (int slab = begin / SLAB * SLAB; slab < end; slab += SLAB) {
        ahead more = lines_of(of, of->group, &a->v, rows->v, slab + SLAB, bs_min(slab + 2 * SLAB, end));
        ahead *next = slab + SLAB < end ? &more : then;
        for (int g = 0; g < groups; g++) {
            values lying = {rows->v, (size_t)(of->group + g) * a->v.unit, 0};
            for (int i = 0; i < of->each; i += BS_QUERIES)
                weigh(of->all + g * of->each + i, bs_min(BS_QUERIES, of->each - i), from, bs_max(slab, begin),
                      bs_min(slab + SLAB, end), &lying, 0, a->dv, i ? 0 : next);
        }
    }
}

/* Keys that are read next: of groups from `group` on, from position `from` of a sequence. */
typedef struct {
    bs_rows k;
    int group, from, last;
} following;

/* The piece from `from` on, of queries of which some see positions [first, last]; then come the keys of `then`. */
static void attend_piece(const bs_attention *a, bs_queries *of, int from, int first, int last,
                         const following *then)
{
    found rows;
    const uint8_t *coming[SLAB];
    int begin = bs_max(first - from, 0), end = bs_min(last - from + 1, PIECE), slab = begin / SLAB * SLAB;
    int count = bs_ceil_div(end, SLAB) * SLAB - slab;
    find_rows(&a->k, from + slab, count, last, rows.k + slab);
    if (a->own < a->dk) find_rows(&a->k_tail, from + slab, count, last, rows.tail + slab);
    find_rows(&a->v, from + slab, count, last, rows.v + slab);
    score_piece(a, of, &rows, from, begin, end);
    for (int i = 0; i < of->count; i++) {
        query *q = &of->all[i];
        q->top = -BS_INFINITY;
        q->sum = 0.0f;
        memset(q->acc, 0, sizeof(float) * (size_t)a->dv);
        if (q->first < from + PIECE && q->last >= from) soften(a, q, from);
    }
    if (of->each == of->count && (of->count > FEW || !BS_LIES(a->v.cells))) {
        weigh_laid(a, of, &rows, from, begin, end);
        return;
    }
    int more = then->from <= then->last;
    if (more) find_rows(&then->k, then->from, SLAB, then->last, coming);
    ahead next = lines_of(of, then->group, &a->k, coming, 0, more ? SLAB : 0);
    weigh_lying(a, of, &rows, from, begin, end, &next);
}

static void finish(const bs_attention *a, float *acc, float sum, int row, int head)
{
    size_t place = ((size_t)row * (size_t)a->heads + (size_t)head) * (size_t)a->dv;
    size_t gate = a->gate ? bs_window_at(a->from_gate, (size_t)row, head * a->dv) : 0;
    /* a row before the first position sees nothing: its sum is empty, its output zero */
    vf by = vf_set(a->position[row] < 0 ? 1.0f : 1.0f / sum);
    for (int d = 0; d < a->dv; d += VL) {
        int n = bs_min(VL, a->dv - d);
        vf v = vf_load_n(acc + d, n) * by;
        if (a->gate) v *= vf_sigmoid(vf_load_n(a->gate + gate + d, n));
        vf_store_n(acc + d, v, n);
        if (a->out.y) vf_store_n(a->out.y + place + (size_t)d, v, n);
    }
}

/* `heads` heads of one row lie side by side, here as in the output, so a quantized block may span two. */
static void finish_codes(const bs_attention *a, const float *acc, int row, int head, int heads)
{
    if (!a->out.q.codes) return;
    size_t place = ((size_t)row * (size_t)a->heads + (size_t)head) * (size_t)a->dv;
    bs_quantize_row(acc, heads * a->dv, bs_quantized_at(a->out.q, place));
}

/* The first position that a row sees. */
static BS_INLINE int first_seen(const bs_attention *a, int row)
{
    return a->window > 0 ? bs_max(a->position[row] - a->window + 1, 0) : 0;
}

/* A query lies where it is, or in `laid`. */
static void start(const bs_attention *a, query *q, int row, int head, float *laid)
{
    size_t place = (size_t)row * (size_t)a->heads + (size_t)head;
    q->row = row;
    q->head = head;
    q->q = a->q + place * (size_t)a->q_pitch;
    q->q_tail = a->q_tail + place * (size_t)a->q_tail_pitch;
    q->last = a->position[row];
    q->first = first_seen(a, row);
    if (query_lies(a->own) && query_lies(a->dk - a->own)) return;
    lay_query(q->q, a->own, laid);
    if (a->own < a->dk) lay_query(q->q_tail, a->dk - a->own, laid + LAID(a->own));
    q->q = laid;
    q->q_tail = laid + LAID(a->own);
}

/* Some queries of one group, from the first position any of them sees to the last. */
static void attend(const bs_attention *a, bs_queries *of, float *whole)
{
    float top[QUERIES], sum[QUERIES];
    int first = of->all[0].first, last = of->all[0].last;
    for (int i = 0; i < of->count; i++) {
        const query *q = &of->all[i];
        top[i] = -BS_INFINITY;
        sum[i] = 0.0f;
        first = bs_min(first, q->first);
        last = bs_max(last, q->last);
    }
    memset(whole, 0, sizeof(float) * (size_t)(of->count * a->dv));
    for (int from = first / PIECE * PIECE; from <= last; from += PIECE) {
        attend_piece(a, of, from, first, last, &(following){a->k, of->group, from + PIECE, last});
        for (int i = 0; i < of->count; i++) {
            query *q = &of->all[i];
            if (q->first < from + PIECE && q->last >= from)
                join(whole + i * a->dv, top + i, sum + i, q->acc, q->top, q->sum, a->dv);
        }
    }
    for (int i = 0, end = 0; i < of->count; i = end) {
        int row = of->all[i].row, head = of->all[i].head;
        for (; end < of->count && of->all[end].row == row; end++)
            finish(a, whole + end * a->dv, sum[end], row, of->all[end].head);
        finish_codes(a, whole + i * a->dv, row, head, end - i);
    }
}

/* How many queries' scores and results, `results` a query, fit behind what is laid. */
static BS_INLINE int lay_out(const bs_attention *a, bs_queries *of, float *scratch, int results,
                             float **behind)
{
    int key = LAID(a->own) + LAID(a->dk - a->own);
    of->laid = query_lies(a->own) && query_lies(a->dk - a->own) ? 0 : key;
    of->keys = scratch;
    of->values = scratch + SLAB * key;
    *behind = of->values + PIECE * COLUMNS;
    int left = SCRATCH / (int)sizeof(float) - (int)(*behind - scratch);
    return bs_min(left / (of->laid + PIECE + results * a->dv), QUERIES);
}

/* Rows [row, row + rows) of one sequence; whole rows at a time where they fit. */
static void attend_rows(const bs_attention *a, int group, int row, int rows, float *scratch)
{
    bs_queries of;
    float *behind;
    int each = a->heads / a->groups, fit = lay_out(a, &of, scratch, 2, &behind);
    if (fit > each) fit -= fit % each;
    else if (fit < each && fit > 32) fit -= fit % 32;
    of.group = group;
    for (int done = 0; done < rows * each; done += fit) {
        of.count = of.each = bs_min(fit, rows * each - done);
        for (int i = 0; i < of.count; i++) {
            query *q = &of.all[i];
            start(a, q, row + (done + i) / each, group * each + (done + i) % each, behind + i * of.laid);
            q->scores = behind + of.count * of.laid + i * PIECE;
            q->acc = behind + of.count * (of.laid + PIECE) + i * a->dv;
        }
        attend(a, &of, behind + of.count * (of.laid + PIECE + a->dv));
    }
}

#endif
