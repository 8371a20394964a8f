/* finish, finish_rows: the tokens drawn become those of the step, which advances; one block.
 *
 * A token below zero says that its row's logits were not finite, which is an error: nothing
 * advances, and every output still holds something a next step may read safely.
 */
#include <advance.h>

BS_KERNEL(finish, "in buffer<i32>, in buffer<i32>, in buffer<i32>, out buffer<i32>, out buffer<i32>, "
                 "out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, "
                 "i32, i32, i32")
{
    BS_UNUSED(block);
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const int32_t *drawn = bs_ptr(&at), *position = bs_ptr(&at), *pages = bs_ptr(&at);
    int32_t *next = bs_ptr(&at), *error = bs_ptr(&at), *token = bs_ptr(&at);
    int32_t *to = bs_ptr(&at), *to_slot = bs_ptr(&at), *run = bs_ptr(&at);
    int rows = bs_i32(&at), page = bs_i32(&at), pages_width = bs_i32(&at);

    int finite = *drawn >= 0, advanced = position[rows - 1] + finite;
    next_place place = place_of(advanced, pages, page, pages_width);
    *next = *token = finite ? *drawn : 0;
    *error = !finite;
    *to = place.position;
    *to_slot = place.slot;
    if (finite && place.inside) run[advanced] = *drawn;
}

/* Each row is a sequence. The step is one: bad logits of any row keep all where they are. */
BS_KERNEL(finish_rows, "in buffer<i32>, in buffer<i32>, in buffer<i32>, out buffer<i32>, "
                      "out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, "
                      "i32, i32, i32")
{
    BS_UNUSED(block);
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const int32_t *drawn = bs_ptr(&at), *position = bs_ptr(&at), *pages = bs_ptr(&at);
    int32_t *next = bs_ptr(&at), *error = bs_ptr(&at), *token = bs_ptr(&at);
    int32_t *to = bs_ptr(&at), *to_slot = bs_ptr(&at);
    int rows = bs_i32(&at), page = bs_i32(&at), pages_width = bs_i32(&at);

    int finite = 1;
    for (int r = 0; r < rows; r++) finite &= drawn[r] >= 0;
    *error = !finite;
    for (int r = 0; r < rows; r++) {
        const int32_t *own = pages + (size_t)r * (size_t)pages_width;
        next_place place = place_of(position[r] + finite, own, page, pages_width);
        next[r] = token[r] = finite ? drawn[r] : 0;
        to[r] = place.position;
        to_slot[r] = place.slot;
    }
}
