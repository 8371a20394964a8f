/* score, topk, renorm, xsum: what a router makes of its logits, and the weighted sum of the chosen
 * experts' outputs; a block is a row.
 */
#include <choice.h>

BS_KERNEL(score, "in buffer<f32>, out buffer<f32>, i32, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++; /* rows: the grid's extent */
    int experts = bs_i32(&at), fn = bs_i32(&at);
    size_t start = block->x * (size_t)experts;
    bs_score(x + start, experts, fn, y + start);
}

static BS_INLINE void topk_entry(const bs_arg *args, size_t row, float *shared, int biased)
{
    bs_cursor at = args;
    const float *x = bs_ptr(&at), *bias = biased ? bs_ptr(&at) : 0;
    int32_t *ids = bs_ptr(&at);
    at++;
    bs_choice choice = bs_choice_in(&at);
    bs_ballot ballot = bs_ballot_at(shared, choice.experts);
    bs_topk(x + row * (size_t)choice.experts, bias, &choice, ballot, ids + row * (size_t)choice.chosen);
}

#define TOPK(entry, bias, biased)                                                        \
    BS_KERNEL(entry, "in buffer<f32>, " bias "out buffer<i32>, i32, i32, i32, i32, i32, i32")  \
    {                                                                                    \
        BS_UNUSED(grid);                                                                 \
        topk_entry(args, block->x, shared, biased);                                      \
    }

TOPK(topk, , 0)
TOPK(topk_b, "in buffer<f32>, ", 1)

BS_KERNEL(renorm, "in buffer<f32>, in buffer<i32>, out buffer<f32>, i32, i32, i32, i32, f32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at);
    const int32_t *ids = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++;
    int experts = bs_i32(&at), chosen = bs_i32(&at), normalise = bs_i32(&at);
    float factor = bs_f32(&at);
    size_t start = block->x * (size_t)chosen;
    bs_renorm(x + block->x * (size_t)experts, ids + start, chosen, normalise, factor, y + start);
}

BS_KERNEL(xsum, "in buffer<f32>, in buffer<f32>, out buffer<f32>, i32, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *x = bs_ptr(&at), *w = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++;
    int chosen = bs_i32(&at), n = bs_i32(&at);
    x += block->x * (size_t)chosen * (size_t)n;
    w += block->x * (size_t)chosen;
    y += block->x * (size_t)n;
    for (int i = 0; i < n; i += VL) {
        int lanes = bs_min(VL, n - i);
        vf total = {0};
        for (int j = 0; j < chosen; j++) total += vf_load_n(x + (size_t)j * (size_t)n + i, lanes) * w[j];
        vf_store_n(y + i, total, lanes);
    }
}
