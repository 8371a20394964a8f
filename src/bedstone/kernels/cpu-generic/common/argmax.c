/* argmax, argmax_rows: the largest logit's index, and the advance to the next step; one block.
 *
 * Ties take the lower index. A logit that is not finite is an error: nothing advances, and every
 * output still holds something a next step may read safely.
 */
#include <vector.h>

#define CHUNK 1024

typedef struct {
    float value;
    int index;
    int finite;
} best;

/* The first index of `value` in [from, from + n). */
static int find(const float *x, int from, int n, float value)
{
    int i = from;
    while (i < from + n - 1 && x[i] != value) i++;
    return i;
}

/* The largest of a chunk; `poison` turns NaN where a value is not finite. */
static float largest(const float *x, int n, vf *poison)
{
    vf top[2] = {vf_set(-BS_INFINITY), vf_set(-BS_INFINITY)}, product = {0};
    int i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        vf a = vf_load(x + i), b = vf_load(x + i + VL);
        top[0] = vf_larger(a, top[0]);
        top[1] = vf_larger(b, top[1]);
        product += a * 0.0f + b * 0.0f;
    }
    float value = vf_max(vf_larger(top[0], top[1]));
    for (; i < n; i++) {
        value = x[i] > value ? x[i] : value;
        product += x[i] * 0.0f;
    }
    *poison += product;
    return value;
}

static best search(const float *logits, int vocab)
{
    best found = {-BS_INFINITY, 0, 1};
    vf poison = {0};
    for (int i = 0; i < vocab; i += CHUNK) {
        int n = bs_min(CHUNK, vocab - i);
        float value = largest(logits + i, n, &poison);
        if (value > found.value) {
            found.value = value;
            found.index = i;
        }
    }
    found.finite = vf_sum(poison) == 0.0f;
    found.index = find(logits, found.index, bs_min(CHUNK, vocab - found.index), found.value);
    return found;
}

/* Where a sequence at `here` goes on: `advanced`, or its last position where there is none behind. */
typedef struct {
    int position, slot, inside;
} next_place;

static next_place place_of(int advanced, const int32_t *pages, int page, int pages_width)
{
    int capacity = page * pages_width, inside = advanced < capacity;
    /* past the last position the next step would write nothing and read the last one */
    if (!inside) return (next_place){capacity - 1, -1, 0};
    return (next_place){advanced, pages[advanced / page] * page + advanced % page, 1};
}

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
