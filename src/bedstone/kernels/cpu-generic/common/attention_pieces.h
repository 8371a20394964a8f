/* Attention of rows of a sequence each in two launches: tasks of a piece each, and what joins the pieces. */
#ifndef BS_ATTENTION_PIECES_H
#define BS_ATTENTION_PIECES_H

#include <attention.h>

/* Where a piece of a row leaves what it makes. */
static BS_INLINE float *part_of(const bs_attention *a, int row, int pieces, int piece)
{
    return a->parts + ((size_t)row * (size_t)pieces + (size_t)piece) * (size_t)(a->heads * (a->dv + 2));
}

/* A share of the work on a batch: one piece of one row, for `groups` groups from `group` on. */
typedef struct {
    int row, piece, group, groups;
} task;

/* Whole groups at a time where they fit, else some of one. */
static void attend_part(const bs_attention *a, task t, const following *then, float *part, float *scratch)
{
    bs_queries of;
    float *behind, *sums = part + a->heads * a->dv;
    int each = a->heads / a->groups, fit = lay_out(a, &of, scratch, 0, &behind);
    if (fit > each) fit -= fit % each;
    for (int done = 0; done < t.groups * each; done += of.count) {
        of.count = bs_min(fit, fit < each ? each - done % each : t.groups * each - done);
        of.each = bs_min(of.count, each);
        of.group = t.group + done / each;
        for (int i = 0; i < of.count; i++) {
            int head = t.group * each + done + i;
            start(a, &of.all[i], t.row, head, behind + i * of.laid);
            of.all[i].scores = behind + of.count * of.laid + i * PIECE;
            of.all[i].acc = part + head * a->dv;
        }
        attend_piece(a, &of, t.piece * PIECE, of.all[0].first, of.all[0].last, then);
        for (int i = 0; i < of.count; i++) {
            sums[2 * of.all[i].head] = of.all[i].top;
            sums[2 * of.all[i].head + 1] = of.all[i].sum;
        }
    }
}

/* Pieces that a row sees; a row before the first position sees none. */
static BS_INLINE int pieces_of(const bs_attention *a, int row)
{
    int last = a->position[row];
    return last < 0 ? 0 : last / PIECE - first_seen(a, row) / PIECE + 1;
}

/* Task `at` of a list that goes through rows, their pieces, and `apart` shares of the groups of each; a task of
   no row where the list is over. */
static task task_at(const bs_attention *a, int at, int apart)
{
    task t = {0, at / apart, at % apart * (a->groups / apart), a->groups / apart};
    while (t.row < a->rows && t.piece >= pieces_of(a, t.row)) t.piece -= pieces_of(a, t.row++);
    if (t.row < a->rows) t.piece += first_seen(a, t.row) / PIECE;
    return t;
}

/* The heads of a group of one row, of what its pieces left. */
static void join_pieces(const bs_attention *a, int row, int group, int pieces, float *whole)
{
    int each = a->heads / a->groups, fit = SCRATCH / (int)sizeof(float) / a->dv, last = a->position[row];
    int first = first_seen(a, row);
    if (fit < each) fit -= fit % 32;
    for (int done = 0, count; done < each; done += count) {
        int head = group * each + done;
        count = bs_min(fit, each - done);
        memset(whole, 0, sizeof(float) * (size_t)(count * a->dv));
        for (int i = 0; i < count; i++) {
            float top = -BS_INFINITY, sum = 0.0f;
            for (int piece = first / PIECE; piece * PIECE <= last; piece++) {
                const float *part = part_of(a, row, pieces, piece), *acc = part + (head + i) * a->dv;
                const float *sums = part + a->heads * a->dv + 2 * (head + i);
                join(whole + i * a->dv, &top, &sum, acc, sums[0], sums[1], a->dv);
            }
            finish(a, whole + i * a->dv, sum, row, head + i);
        }
        finish_codes(a, whole, row, head, count);
    }
}

#endif
