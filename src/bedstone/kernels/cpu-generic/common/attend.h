/* The products of an attention: queries with keys laid side by side, their weights with values.
 *
 * What a query gains is the same whichever queries beside it go along: every sum takes its steps in
 * the order of the values of a key, or of positions.
 */
#ifndef BS_ATTEND_H
#define BS_ATTEND_H

#include <pairs.h>
#include <table.h>

/* Rows of tables lie as cells, those of buffers as floats: kernels of wide tables need no telling. What is not as
   tables have it is laid before it is multiplied. */
#define BS_CELLS(cells) (BS_NARROW_TABLES && (cells))
#define BS_LIES(cells) (!BS_NARROW_TABLES || (cells))

static BS_INLINE int bs_value_bytes(int cells) { return BS_CELLS(cells) ? (int)sizeof(bs_cell) : (int)sizeof(float); }

#if BS_ROUND && BS_PAIR_PRODUCTS
#include <attend_pairs.h>
#else
#include <attend_floats.h>
#endif

#define PIECE 128        /* positions whose scores share a maximum; pieces begin at multiples */
#define SLAB 16          /* positions whose keys are laid side by side */
#define COLUMNS (4 * VL) /* values of a tile of results */
#define LAID(width) (bs_ceil_div(width, STEP) * VL) /* floats that so many values of a key or query take */

/* One row's query of one head, over one piece. */
typedef struct {
    const float *q, *q_tail;
    float *scores; /* [PIECE] */
    float *acc;    /* [dv] */
    int row, head;
    int first, last; /* the positions it sees */
    float top, sum;
} query;

/* Lines of rows that are yet to be sent for, a few rows side by side: a core that sends for many at once
   waits for them, or drops them, so they go while it works on the rows before. */
typedef struct {
    const uint8_t *const *rows;
    int count, begin, end; /* rows, and the bytes of each */
    int t, at, lane;
} ahead;

#define LINE 64
#define WALK 4 /* rows side by side: each lies in a page of its own, and is a stream for the core */

/* Sends for one line of each of the rows side by side. */
static BS_INLINE void send_across(ahead *next)
{
#pragma GCC unroll 4
    for (int i = 0; i < WALK; i++) __builtin_prefetch(next->rows[next->t + i] + next->at, 0, 2);
    next->at += LINE;
    if (next->at < next->end) return;
    next->at = next->begin;
    next->t += WALK;
}

static BS_INLINE void send(ahead *next, const int lines)
{
    for (int i = 0; lines % WALK == 0 && i < lines / WALK && next->t < next->count; i++) send_across(next);
    for (int i = 0; lines % WALK && i < lines && next->t < next->count; i++) {
        __builtin_prefetch(next->rows[next->t + next->lane] + next->at, 0, 2);
        if (++next->lane < WALK) continue;
        next->lane = 0;
        next->at += LINE;
        if (next->at < next->end) continue;
        next->at = next->begin;
        next->t += WALK;
    }
}

/* Lines that `count` values take, at most. */
static BS_INLINE int lines_for(int count, int cells) { return bs_ceil_div(count * bs_value_bytes(cells), LINE); }

/* Values [at, at + width) of rows, VL rows after VL others. */
static BS_INLINE void lay_some_keys(const uint8_t *const rows[SLAB], const int cells, size_t at, int width, float *keys,
                                    ahead *next)
{
    for (int t = 0; t < SLAB; t += VL)
        for (int d = 0; d < width; d += STEP, keys += VL * VL) {
            vf some[VL / 4][4];
            send(next, lines_for(VL * STEP, cells));
            find_keys(rows + t, cells, at + (size_t)d, bs_min(STEP, width - d), some);
            for (int c = 0; c < VL; c++) vf_store(keys + c * VL, some[c / 4][c % 4]);
        }
}

static void lay_keys(const uint8_t *const rows[SLAB], int cells, size_t at, int width, float *keys, ahead *next)
{
    if (BS_CELLS(cells)) lay_some_keys(rows, 1, at, width, keys, next);
    else lay_some_keys(rows, 0, at, width, keys, next);
}

/* Sums of the products of `width` values of queries and of VL keys: four of every fourth value, or pair
   of values, each. Keys are laid, or in rows, `at` values into each. */
static BS_INLINE void add_products(const float *const *q, const int count, const float *key,
                                   const uint8_t *const *rows, const int cells, size_t at, int width, ahead *next,
                                   vf acc[BS_QUERIES][4])
{
    for (int d = 0, to = 0; d < width; d += STEP, to += VL, key += VL * VL) {
        vf k[VL / 4][4];
        if (rows) {
            send(next, lines_for(VL * STEP, cells));
            find_keys(rows, cells, at + (size_t)d, bs_min(STEP, width - d), k);
        }
#pragma GCC unroll 4
        for (int c = 0; c < VL / 4; c++) {
            if (!rows) {
#pragma GCC unroll 4
                for (int j = 0; j < 4; j++) k[c][j] = vf_load(key + (4 * c + j) * VL);
            }
#pragma GCC unroll 8
            for (int i = 0; i < count; i++) {
                vf x = vf_quad(q[i] + to + 4 * c);
#pragma GCC unroll 8
                for (int j = 0; j < 4; j++) acc[i][j] = product(acc[i][j], x, k[c][j]);
            }
        }
    }
}

/* Where the keys of VL positions lie: laid in `keys` and `keys_tail`, or in rows. */
typedef struct {
    const float *keys, *keys_tail;
    const uint8_t *const *rows, *const *rows_tail;
    size_t at, at_tail;
    int own, tail;
} key_block;

static BS_INLINE void score_some(const query *queries, const int count, const int lying, const key_block *k,
                                 int to, ahead *next)
{
    vf acc[BS_QUERIES][4];
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int j = 0; j < 4; j++) acc[i][j] = (vf){0};
    const float *q[BS_QUERIES];
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) q[i] = queries[i].q;
    if (lying) add_products(q, count, 0, k->rows, BS_NARROW_TABLES, k->at, k->own, next, acc);
    else add_products(q, count, k->keys, 0, 0, 0, k->own, next, acc);
    if (k->tail) {
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) q[i] = queries[i].q_tail;
        if (lying) add_products(q, count, 0, k->rows_tail, BS_NARROW_TABLES, k->at_tail, k->tail, next, acc);
        else add_products(q, count, k->keys_tail, 0, 0, 0, k->tail, next, acc);
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) vf_store(queries[i].scores + to, vf_fold_quads(acc[i]));
}

/* Raw scores of `count` queries at VL positions, to place `to` of their pieces. */
static void score(const query *queries, int count, const key_block *k, int to)
{
    switch (count) {
    case 1: score_some(queries, 1, 0, k, to, 0); break;
    case 2: score_some(queries, 2, 0, k, to, 0); break;
#if BS_QUERIES == 4
    case 3: score_some(queries, 3, 0, k, to, 0); break;
    default: score_some(queries, 4, 0, k, to, 0); break;
#endif
    }
}

/* The same where keys lie in rows that no other query needs. */
static void score_lying(const query *queries, int count, const key_block *k, int to, ahead *next)
{
    switch (count) {
    case 1: score_some(queries, 1, 1, k, to, next); break;
    case 2: score_some(queries, 2, 1, k, to, next); break;
#if BS_QUERIES == 4
    case 3: score_some(queries, 3, 1, k, to, next); break;
    default: score_some(queries, 4, 1, k, to, next); break;
#endif
    }
}

/* Where the values of a piece lie: `at` values into each row, or laid for one tile of columns. */
typedef struct {
    const uint8_t *const *rows;
    size_t at;
    const float *laid; /* null: in rows */
} values;

/* `count` queries gain their weighted values of positions [first, last] of a piece: `columns` vectors, of
   which the last has `n` values, that go `to` values into each result. */
static BS_INLINE void weigh_columns(const query *queries, const int count, const int columns, const int n,
                                    const values *of, int to, int first, int last, ahead *next)
{
    vf acc[BS_QUERIES][4];
    const float *weights[BS_QUERIES], *laid = of->laid;
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        weights[i] = queries[i].scores;
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++)
            acc[i][j] = vf_load_n(queries[i].acc + to + j * VL, j + 1 < columns ? VL : n);
    }
    for (int t = first; t <= last; t += UNIT) {
        vf v[4];
        if (next) send(next, lines_for(UNIT * columns * VL, BS_NARROW_TABLES));
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++)
            v[j] = laid ? vf_load(laid + t / UNIT * COLUMNS + j * VL)
                        : value_of(of->rows, BS_NARROW_TABLES, t, of->at + (size_t)(to + j * VL),
                                   j + 1 < columns ? VL : n);
#pragma GCC unroll 8
        for (int i = 0; i < count; i++) {
            vf weight = weight_of(weights[i], t);
#pragma GCC unroll 8
            for (int j = 0; j < columns; j++) acc[i][j] = product(acc[i][j], weight, v[j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++)
            vf_store_n(queries[i].acc + to + j * VL, acc[i][j], j + 1 < columns ? VL : n);
}

/* Columns [to, to + width) of results: whole tiles, then vectors; of laid values at most one tile. */
static BS_INLINE void weigh_some(const query *queries, const int count, const values *of, int to, int width,
                                 int first, int last, ahead *next)
{
    if (first > last) return;
    int d = 0;
    for (; d + COLUMNS <= width; d += COLUMNS)
        weigh_columns(queries, count, 4, VL, of, to + d, first, last, next);
    for (values rest = *of; d < width; d += VL) {
        if (of->laid) rest.laid = of->laid + d;
        weigh_columns(queries, count, 1, bs_min(VL, width - d), &rest, to + d, first, last, next);
    }
}

static void weigh_together(const query *queries, int count, const values *of, int to, int width, int first,
                           int last, ahead *next)
{
    switch (count) {
    case 1: weigh_some(queries, 1, of, to, width, first, last, next); break;
    case 2: weigh_some(queries, 2, of, to, width, first, last, next); break;
#if BS_QUERIES == 4
    case 3: weigh_some(queries, 3, of, to, width, first, last, next); break;
    default: weigh_some(queries, 4, of, to, width, first, last, next); break;
#endif
    }
}

/* Positions of a piece that a query sees, in whole units: what it does not see of one weighs nothing. */
static BS_INLINE int seen_first(const query *q, int from) { return (q->first - from) & -UNIT; }
static BS_INLINE int seen_last(const query *q, int from) { return (q->last - from) | (UNIT - 1); }

/* At most BS_QUERIES queries gain positions [begin, end) of the piece from `from` on: together what
   all of them see, each alone what it sees before and behind that. */
static void weigh(const query *queries, int count, int from, int begin, int end, const values *of, int to,
                  int width, ahead *next)
{
    begin &= -UNIT;
    int most = (end - 1) | (UNIT - 1), first = begin, last = most;
    for (int i = 0; i < count; i++) {
        first = bs_max(first, seen_first(queries + i, from));
        last = bs_min(last, seen_last(queries + i, from));
    }
    if (first > last) last = first - 1;
    for (int i = 0; i < count && first > begin; i++)
        weigh_together(queries + i, 1, of, to, width, bs_max(begin, seen_first(queries + i, from)),
                       bs_min(bs_min(first - 1, most), seen_last(queries + i, from)), 0);
    weigh_together(queries, count, of, to, width, first, last, next);
    for (int i = 0; i < count && last < most; i++)
        weigh_together(queries + i, 1, of, to, width,
                       bs_max(last + 1, bs_max(begin, seen_first(queries + i, from))),
                       bs_min(most, seen_last(queries + i, from)), 0);
}

#endif
