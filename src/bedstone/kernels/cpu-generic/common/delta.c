/* decay, delta, delta_gates: the gated delta rule on a state [dk, dv] of each head.
 *
 * A block is some columns of one head's state in one sequence: what a column becomes depends on no
 * other. A sequence that begins starts from zeros, whatever its line holds.
 */
#include <part.h>

#define COLUMNS 32
#define VECTORS (COLUMNS / VL)

/* -exp(a_log) * softplus(a + dt) */
static BS_INLINE vf decayed(vf a, vf a_log, vf dt) { return -vf_exp(a_log) * vf_softplus(a + dt); }

BS_KERNEL(decay, "in buffer<f32>, in buffer<f32>, in buffer<f32>, out buffer<f32>, i32, i32, "
                 "i32, i32, i32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *a = bs_ptr(&at), *a_log = bs_ptr(&at), *dt = bs_ptr(&at);
    float *y = bs_ptr(&at);
    at++; /* rows: the grid's extent */
    int heads = bs_i32(&at);
    bs_window window = bs_window_in(&at);
    y += block->x * (size_t)heads;
    for (int i = 0; i < heads;) {
        int n = bs_min(VL, bs_window_run(window, i, heads));
        vf from = vf_load_n(a + bs_window_at(window, block->x, i), n);
        vf_store_n(y + i, decayed(from, vf_load_n(a_log + i, n), vf_load_n(dt + i, n)), n);
        i += n;
    }
}

typedef struct {
    const float *q, *k, *v;
    const float *g, *beta;            /* [rows, heads], or null: made of what follows */
    const float *a, *b, *a_log, *dt;
    bs_window from_a, from_b;
    const int32_t *line, *position;
    float *state, *y;
    int rows, seqs, key_heads, heads, dk, dv;
    float scale;
} bs_delta;

/* What one row does to one head's state: the factor on it, and how much of the row it takes in. */
typedef struct {
    float shrink, beta;
} gates;

static gates gates_of(const bs_delta *d, size_t row, int head)
{
    float g, beta;
    if (d->g) {
        size_t at = row * (size_t)d->heads + (size_t)head;
        g = d->g[at];
        beta = d->beta[at];
    } else {
        vf a = vf_set(d->a[bs_window_at(d->from_a, row, head)]);
        g = decayed(a, vf_set(d->a_log[head]), vf_set(d->dt[head]))[0];
        beta = vf_sigmoid(vf_set(d->b[bs_window_at(d->from_b, row, head)]))[0];
    }
    return (gates){vf_exp(vf_set(g))[0], beta};
}

/* One row in `n` columns: the state shrinks, takes in what the key does not find, and is asked by
   the query. */
static BS_INLINE void step(const bs_delta *d, const float *q, const float *k, const float *v,
                           gates gate, float *s, float *y, const int n)
{
    vf found[VECTORS] = {{0}}, taken[VECTORS] = {{0}}, asked[VECTORS] = {{0}};
    for (int i = 0; i < d->dk; i++) {
        float *row = s + (size_t)i * (size_t)d->dv;
#pragma GCC unroll 8
        for (int j = 0; j < n; j += VL) {
            vf shrunk = vf_load_n(row + j, bs_min(VL, n - j)) * gate.shrink;
            vf_store_n(row + j, shrunk, bs_min(VL, n - j));
            found[j / VL] = vf_fma(vf_set(k[i]), shrunk, found[j / VL]);
        }
    }
#pragma GCC unroll 8
    for (int j = 0; j < n; j += VL)
        taken[j / VL] = gate.beta * (vf_load_n(v + j, bs_min(VL, n - j)) - found[j / VL]);
    for (int i = 0; i < d->dk; i++) {
        float *row = s + (size_t)i * (size_t)d->dv;
#pragma GCC unroll 8
        for (int j = 0; j < n; j += VL) {
            vf now = vf_fma(vf_set(k[i]), taken[j / VL], vf_load_n(row + j, bs_min(VL, n - j)));
            vf_store_n(row + j, now, bs_min(VL, n - j));
            asked[j / VL] = vf_fma(vf_set(q[i]), now, asked[j / VL]);
        }
    }
#pragma GCC unroll 8
    for (int j = 0; j < n; j += VL) vf_store_n(y + j, d->scale * asked[j / VL], bs_min(VL, n - j));
}

static void delta_block(const bs_delta *d, const bs_dim3 *block)
{
    int head = (int)block->x, from = COLUMNS * (int)block->z, n = bs_min(COLUMNS, d->dv - from);
    size_t rows = (size_t)(d->rows / d->seqs), first = block->y * rows;
    size_t line = (size_t)d->line[block->y] * (size_t)d->heads + (size_t)head;
    float *s = d->state + line * (size_t)d->dk * (size_t)d->dv + from;
    if (d->position[first] == 0)
        for (int i = 0; i < d->dk; i++) memset(s + (size_t)i * (size_t)d->dv, 0, (size_t)n * sizeof(float));
    size_t key_head = (size_t)(head / (d->heads / d->key_heads));
    for (size_t r = first; r < first + rows; r++) {
        size_t key = (r * (size_t)d->key_heads + key_head) * (size_t)d->dk;
        size_t value = (r * (size_t)d->heads + (size_t)head) * (size_t)d->dv + (size_t)from;
        const float *q = d->q + key, *k = d->k + key, *v = d->v + value;
        gates gate = gates_of(d, r, head);
        if (n == COLUMNS) step(d, q, k, v, gate, s, d->y + value, COLUMNS);
        else step(d, q, k, v, gate, s, d->y + value, n);
    }
}

static BS_INLINE void delta_entry(const bs_arg *args, const bs_dim3 *block, int makes_gates)
{
    bs_cursor at = args;
    bs_delta d = {0};
    d.q = bs_ptr(&at);
    d.k = bs_ptr(&at);
    d.v = bs_ptr(&at);
    if (makes_gates) {
        d.a = bs_ptr(&at);
        d.b = bs_ptr(&at);
        d.a_log = bs_ptr(&at);
        d.dt = bs_ptr(&at);
    } else {
        d.g = bs_ptr(&at);
        d.beta = bs_ptr(&at);
    }
    d.state = bs_ptr(&at);
    d.line = bs_ptr(&at);
    d.position = bs_ptr(&at);
    d.y = bs_ptr(&at);
    d.rows = bs_i32(&at);
    d.seqs = bs_i32(&at);
    d.key_heads = bs_i32(&at);
    d.heads = bs_i32(&at);
    d.dk = bs_i32(&at);
    d.dv = bs_i32(&at);
    d.scale = bs_f32(&at);
    if (makes_gates) {
        d.from_a = bs_window_in(&at);
        d.from_b = bs_window_in(&at);
    }
    delta_block(&d, block);
}

#define X "in buffer<f32>, "
#define WHERE "inout state, in buffer<i32>, in buffer<i32>, out buffer<f32>, "
#define SIZES "i32, i32, i32, i32, i32, i32, f32"

#define DELTA(entry, types, makes_gates)                \
    BS_KERNEL(entry, types)                             \
    {                                                   \
        BS_UNUSED(grid);                                \
        BS_UNUSED(shared);                              \
        delta_entry(args, block, makes_gates);          \
    }

DELTA(delta, X X X X X WHERE SIZES, 0)
DELTA(delta_gates, X X X X X X X WHERE SIZES ", i32, i32, i32, i32, i32, i32", 1)
