/* A router's choice: scores of its logits, the best experts, and the weights they are given. */
#ifndef BS_CHOICE_H
#define BS_CHOICE_H

#include <vector.h>

#define BS_SIGMOID 1 /* score function; else softmax */

/* Only experts of the `group_k` best groups are chosen; a group's worth is that of its
   `group_best` best experts together. */
typedef struct {
    int experts, chosen, groups, group_k, group_best;
} bs_choice;

/* What a choice needs of its own, each as long as there are experts. */
typedef struct {
    float *judged, *worth;
    uint8_t *gone;
} bs_ballot;

#define BS_BALLOT_BYTES 12 /* an expert */

static BS_INLINE bs_ballot bs_ballot_at(float *memory, int experts)
{
    return (bs_ballot){memory, memory + experts, (uint8_t *)(memory + 2 * experts)};
}

static BS_INLINE bs_choice bs_choice_in(bs_cursor *at)
{
    bs_choice choice;
    choice.experts = bs_i32(at);
    choice.chosen = bs_i32(at);
    choice.groups = bs_i32(at);
    choice.group_k = bs_i32(at);
    choice.group_best = bs_i32(at);
    return choice;
}

/* `y` may be `x`. */
static void bs_score(const float *x, int experts, int fn, float *y)
{
    float top = -BS_INFINITY;
    vf sum = {0};
    for (int i = 0; i < experts; i++) top = x[i] > top ? x[i] : top;
    for (int i = 0; i < experts; i += VL) {
        int n = bs_min(VL, experts - i);
        vf v = vf_load_n(x + i, n);
        vf_store_n(y + i, fn == BS_SIGMOID ? vf_sigmoid(v) : vf_exp(v - top), n);
        sum += vf_load_n(y + i, n); /* read back: lanes past the last are zero again */
    }
    vf total = vf_set(fn == BS_SIGMOID ? 1.0f : vf_sum(sum));
    for (int i = 0; i < experts; i += VL) {
        int n = bs_min(VL, experts - i);
        vf_store_n(y + i, vf_load_n(y + i, n) / total, n);
    }
}

/* The best of what is left, the first of equals; some of it even where none is a number. */
static int bs_take_best(const float *x, uint8_t *gone, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (!gone[i] && (best < 0 || x[i] > x[best])) best = i;
    gone[best] = 1;
    return best;
}

/* Experts outside the best groups are worth less than any other. */
static void bs_keep_groups(const bs_choice *choice, bs_ballot ballot)
{
    int size = choice->experts / choice->groups;
    for (int g = 0; g < choice->groups; g++) {
        const float *own = ballot.judged + g * size;
        float worth = 0.0f;
        memset(ballot.gone, 0, (size_t)size);
        for (int i = 0; i < choice->group_best; i++) worth += own[bs_take_best(own, ballot.gone, size)];
        ballot.worth[g] = worth;
    }
    memset(ballot.gone, 0, (size_t)choice->groups);
    for (int i = 0; i < choice->group_k; i++) bs_take_best(ballot.worth, ballot.gone, choice->groups);
    for (int i = 0; i < choice->experts; i++)
        if (!ballot.gone[i / size]) ballot.judged[i] = -BS_INFINITY;
}

/* The chosen of one row's scores, best first; the bias counts for the choice alone. */
static void bs_topk(const float *x, const float *bias, const bs_choice *choice, bs_ballot ballot,
                    int32_t *ids)
{
    for (int i = 0; i < choice->experts; i++) ballot.judged[i] = bias ? x[i] + bias[i] : x[i];
    if (choice->groups > 1) bs_keep_groups(choice, ballot);
    memset(ballot.gone, 0, (size_t)choice->experts);
    for (int i = 0; i < choice->chosen; i++)
        ids[i] = bs_take_best(ballot.judged, ballot.gone, choice->experts);
}

static void bs_renorm(const float *x, const int32_t *ids, int chosen, int normalise, float factor,
                      float *y)
{
    float sum = 0.0f;
    for (int i = 0; i < chosen; i++) sum += x[ids[i]];
    for (int i = 0; i < chosen; i++) y[i] = (normalise ? x[ids[i]] / sum : x[ids[i]]) * factor;
}

#endif
