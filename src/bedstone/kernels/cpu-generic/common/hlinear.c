/* hlinear, hlinear_t: each head of a row by its own matrix; a block is a share of one head's outputs. */
#include <part.h>
#include <product.h>
#include <quantize.h>

#define TILE BS_QBLOCK /* outputs of a block: one block of their quantized form */
#define COLUMNS 256    /* of a block of the transposed */
#define ROWS 64        /* whose sums fit its scratch */

/* Where one head's values of a row begin: whole heads lie together in a part's units. */
static BS_INLINE bs_activations head_of(bs_activations a, bs_window window, int head)
{
    size_t at = bs_window_at(window, 0, head * a.k);
    a.pitch = window.row;
    if (a.x) {
        a.x += at;
    } else {
        a.codes += at;
        a.scales += at / BS_QBLOCK;
        a.sums += at / BS_QBLOCK;
    }
    return a;
}

static BS_INLINE void hlinear_entry(const bs_arg *args, const bs_dim3 *block, void *shared, int reads,
                                    int to_float, int to_codes)
{
    bs_cursor at = args;
    bs_scratch *scratch = shared;
    bs_activations a = bs_activations_in(&at, reads);
    const uint8_t *w = bs_ptr(&at);
    bs_forms out = bs_forms_out(&at, to_float, to_codes);
    int rows = bs_i32(&at), heads = bs_i32(&at), head = (int)block->x;
    a.k = bs_i32(&at);
    int n = bs_i32(&at), from = TILE * (int)block->y, count = bs_min(TILE, n - from);
    a = head_of(a, bs_window_in(&at), head);
    bs_weight_rows list = {{0}, count};
    for (int i = 0; i < BS_LIST; i++)
        list.row[i] = w + (size_t)(head * n + from + bs_min(i, count - 1)) * bs_row_bytes(a.k);
    for (int first = 0; first < rows; first += bs_chunk(&a)) {
        int chunk = bs_min(bs_chunk(&a), rows - first);
        bs_product(&a, &list, (size_t)first, chunk, scratch);
        for (int r = 0; r < chunk; r++) {
            size_t place = (size_t)(first + r) * (size_t)heads + (size_t)head;
            bs_put_forms(out, place * (size_t)n + (size_t)from, scratch->sums[r], count);
        }
    }
}

/* --- transposed -------------------------------------------------------------------------------- */

/* Values [from, from + count) of a weight row, `from` on a whole header. */
static void unpack(const uint8_t *row, int from, int count, float *out)
{
#if BS_DENSE
    for (int i = 0; i < count; i += VL) {
        int n = bs_min(VL, count - i);
        vf_store_n(out + i, bs_values(row, from + i, n), n);
    }
#else
    bs_unpack_row(row + bs_row_bytes(from), count, out);
#endif
}

static void add_row(const float *w, float x, int count, float *sums)
{
    for (int j = 0; j < count; j += VL) {
        int n = bs_min(VL, count - j);
        vf_store_n(sums + j, vf_fma(vf_set(x), vf_load_n(w + j, n), vf_load_n(sums + j, n)), n);
    }
}

BS_KERNEL(BS_ENTRY(hlinear_t_, ), "in buffer<f32>, in buffer<" BS_W ">, out buffer<f32>, "
                                  "i32, i32, i32, i32, i32, i32, i32")
{
    BS_UNUSED(grid);
    bs_cursor at = args;
    bs_activations a = bs_activations_in(&at, 0);
    const uint8_t *w = bs_ptr(&at);
    float *y = bs_ptr(&at), (*sums)[COLUMNS] = shared;
    int rows = bs_i32(&at), heads = bs_i32(&at), head = (int)block->x;
    a.k = bs_i32(&at);
    int n = bs_i32(&at), from = COLUMNS * (int)block->y, count = bs_min(COLUMNS, n - from);
    a = head_of(a, bs_window_in(&at), head);
    w += (size_t)head * (size_t)a.k * bs_row_bytes(n);
    for (int first = 0; first < rows; first += ROWS) {
        int chunk = bs_min(ROWS, rows - first);
        memset(sums, 0, (size_t)chunk * sizeof *sums);
        for (int i = 0; i < a.k; i++) {
            float values[COLUMNS];
            unpack(w + (size_t)i * bs_row_bytes(n), from, count, values);
            for (int r = 0; r < chunk; r++)
                add_row(values, a.x[(size_t)(first + r) * (size_t)a.pitch + (size_t)i], count, sums[r]);
        }
        for (int r = 0; r < chunk; r++)
            memcpy(y + ((size_t)(first + r) * (size_t)heads + (size_t)head) * (size_t)n + (size_t)from, sums[r],
                   (size_t)count * sizeof(float));
    }
}

/* --- entries ----------------------------------------------------------------------------------- */

#define X "in buffer<f32>, "
#define XQ "in buffer<i8>, in buffer<f32>, in buffer<i32>, "
#define W "in buffer<" BS_W ">, "
#define Y "out buffer<f32>, "
#define YQ "out buffer<i8>, out buffer<f32>, out buffer<i32>, "

#define HLINEAR(form, suffix, x, y, ...)                                               \
    BS_KERNEL(BS_ENTRY(hlinear##form, suffix), x W y "i32, i32, i32, i32, i32, i32, i32") \
    {                                                                                  \
        BS_UNUSED(grid);                                                               \
        hlinear_entry(args, block, shared, __VA_ARGS__);                               \
    }

#define FORMS(form, x, reads)                       \
    HLINEAR(form, , x, Y, reads, 1, 0)              \
    HLINEAR(form, _q, x, YQ, reads, 0, 1)           \
    HLINEAR(form, _fq, x, Y YQ, reads, 1, 1)

FORMS(_, X, BS_AS_FLOATS)
#if !BS_DENSE
FORMS(_q_, XQ, BS_AS_CODES)
#elif BS_FORMAT == BS_BF16
FORMS(_r_, X, BS_MAY_ROUND)
#endif
