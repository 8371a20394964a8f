/* argmax, argmax_rows: the largest logit's index, and the advance to the next step; one block.
 *
 * Ties take the lower index. A logit that is not finite is an error: nothing advances, and every
 * output still holds something a next step may read safely.
 */
#include <advance.h>
#include <search.h>

BS_KERNEL(argmax, "in buffer<f32>, in buffer<i32>, in buffer<i32>, out buffer<i32>, out buffer<i32>, "
                  "out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, "
                  "i32, i32, i32, i32")
{
    BS_UNUSED(block);
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *logits = bs_ptr(&at);
    const int32_t *position = bs_ptr(&at), *pages = bs_ptr(&at);
    int32_t *next = bs_ptr(&at), *error = bs_ptr(&at), *token = bs_ptr(&at);
    int32_t *to = bs_ptr(&at), *to_slot = bs_ptr(&at), *run = bs_ptr(&at);
    int rows = bs_i32(&at), vocab = bs_i32(&at), page = bs_i32(&at), pages_width = bs_i32(&at);

    best found = search(logits, vocab);
    int advanced = position[rows - 1] + (found.finite ? 1 : 0);
    next_place place = place_of(advanced, pages, page, pages_width);
    *next = *token = found.finite ? found.index : 0;
    *error = !found.finite;
    *to = place.position;
    *to_slot = place.slot;
    if (found.finite && place.inside) run[advanced] = found.index;
}

/* Each row is a sequence. The step is one: a bad logit of any row keeps all where they are. */
BS_KERNEL(argmax_rows, "in buffer<f32>, in buffer<i32>, in buffer<i32>, out buffer<i32>, "
                       "out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, "
                       "i32, i32, i32, i32")
{
    BS_UNUSED(block);
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *logits = bs_ptr(&at);
    const int32_t *position = bs_ptr(&at), *pages = bs_ptr(&at);
    int32_t *next = bs_ptr(&at), *error = bs_ptr(&at), *token = bs_ptr(&at);
    int32_t *to = bs_ptr(&at), *to_slot = bs_ptr(&at);
    int rows = bs_i32(&at), vocab = bs_i32(&at), page = bs_i32(&at), pages_width = bs_i32(&at);

    int finite = 1;
    for (int r = 0; r < rows; r++) {
        best found = search(logits + (size_t)r * (size_t)vocab, vocab);
        next[r] = found.index;
        finite &= found.finite;
    }
    *error = !finite;
    for (int r = 0; r < rows; r++) {
        const int32_t *own = pages + (size_t)r * (size_t)pages_width;
        next_place place = place_of(position[r] + finite, own, page, pages_width);
        next[r] = token[r] = finite ? next[r] : 0;
        to[r] = place.position;
        to_slot[r] = place.slot;
    }
}
