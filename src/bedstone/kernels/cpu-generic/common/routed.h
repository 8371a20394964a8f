/* Products of rows with the matrices of the experts each row chose.
 *
 * Rows that chose one expert go together, so its weights are read once; no sum depends on who else
 * chose it.
 */
#ifndef BS_ROUTED_H
#define BS_ROUTED_H

#include <product.h>

#define BS_MOST_EXPERTS 1024
#define BS_PAIRS 2048 /* of a row and an expert, sorted at a time */
#define BS_TILE 32    /* outputs a block owns: one block of their quantized form */

/* Rows [first, first + rows) and their choices; without ids there is but one matrix, for all. */
typedef struct {
    bs_activations x; /* of each row, or with `units` of each of its choices */
    const int32_t *ids;
    int first, rows, chosen, units;
} bs_routed;

/* Outputs [from, from + count) of every expert's matrix [n, k], or of two such stacks. */
typedef struct {
    const uint8_t *w[2];
    int stacks, n, from, count;
} bs_outputs;

/* What becomes of the sums of choice `pair` = row * chosen + j: of each stack in turn. */
typedef struct {
    void (*put)(const void *to, size_t pair, const float *sums);
    const void *to;
} bs_taker;

static BS_INLINE bs_routed bs_routed_in(bs_cursor *at, int reads)
{
    bs_routed in = {0};
    in.x = bs_activations_in(at, reads);
    in.ids = bs_ptr(at);
    return in;
}

static BS_INLINE bs_outputs bs_outputs_of(unsigned block, int n)
{
    int from = bs_min(BS_TILE * (int)block, n);
    return (bs_outputs){{0}, 1, n, from, bs_min(BS_TILE, n - from)};
}

static void bs_list_expert(const bs_outputs *out, int expert, int k, bs_weight_rows *list)
{
    list->count = 0;
    for (int s = 0; s < out->stacks; s++)
        for (int i = 0; i < out->count; i++) {
            size_t row = (size_t)expert * (size_t)out->n + (size_t)(out->from + i);
            list->row[list->count++] = out->w[s] + row * bs_row_bytes(k);
        }
    for (int i = list->count; i < BS_LIST; i++) list->row[i] = list->row[list->count - 1];
}

/* The pairs [first, first + count) by expert, those of one expert in order. */
static void bs_sort_pairs(const int32_t *ids, int first, int count, int32_t *sorted)
{
    int32_t starts[BS_MOST_EXPERTS + 1] = {0};
    for (int i = 0; i < count; i++) starts[ids[first + i] + 1]++;
    for (int e = 0; e < BS_MOST_EXPERTS; e++) starts[e + 1] += starts[e];
    for (int i = 0; i < count; i++) sorted[starts[ids[first + i]]++] = first + i;
}

/* Pairs of one expert. */
static void bs_multiply_run(const bs_routed *in, const bs_outputs *out, const int32_t *pairs, int count,
                            bs_taker taker, bs_scratch *scratch)
{
    bs_weight_rows list;
    bs_list_expert(out, in->ids ? in->ids[pairs[0]] : 0, in->x.k, &list);
    for (int c = 0, chunk = bs_chunk(&in->x); c < count; c += chunk) {
        int rows = bs_min(chunk, count - c);
        int32_t pick[BS_CHUNK];
        for (int r = 0; r < rows; r++) pick[r] = in->units > 1 ? pairs[c + r] : pairs[c + r] / in->chosen;
        bs_activations a = in->x;
        a.pick = pick;
        bs_product(&a, &list, 0, rows, scratch);
        for (int r = 0; r < rows; r++) taker.put(taker.to, (size_t)pairs[c + r], scratch->sums[r]);
    }
}

static void bs_multiply(const bs_routed *in, const bs_outputs *out, bs_taker taker, bs_scratch *scratch)
{
    if (out->count <= 0) return;
    int last = (in->first + in->rows) * in->chosen;
    for (int first = in->first * in->chosen, count; first < last; first += count) {
        int32_t pairs[BS_PAIRS];
        count = bs_min(BS_PAIRS, last - first);
        if (in->ids) bs_sort_pairs(in->ids, first, count, pairs);
        else
            for (int i = 0; i < count; i++) pairs[i] = first + i;
        for (int i = 0, end = 0; i < count; i = end) {
            while (end < count && (!in->ids || in->ids[pairs[end]] == in->ids[pairs[i]])) end++;
            bs_multiply_run(in, out, pairs + i, end - i, taker, scratch);
        }
    }
}

#endif
