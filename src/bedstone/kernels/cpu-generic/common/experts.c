/* route, xlinear, xglu, xdown: a mixture's products, of one weight format.
 *
 * A block is a tile of the outputs of every expert; of a router, some rows. A mixture's shared
 * network is dealt out among the same blocks.
 */
#include <choice.h>
#include <gate.h>
#include <quantize.h>
#include <routed.h>

/* --- xlinear ----------------------------------------------------------------------------------- */

typedef struct {
    float *y;
    int n, from, count;
} floats;

static void put_floats(const void *to, size_t pair, const float *sums)
{
    const floats *f = to;
    memcpy(f->y + pair * (size_t)f->n + (size_t)f->from, sums, (size_t)f->count * sizeof(float));
}

static BS_INLINE void xlinear_entry(const bs_arg *args, const bs_dim3 *block, void *shared, int reads)
{
    bs_cursor at = args;
    bs_routed in = bs_routed_in(&at, reads);
    const uint8_t *w = bs_ptr(&at);
    float *y = bs_ptr(&at);
    in.rows = bs_i32(&at);
    in.chosen = bs_i32(&at);
    in.units = bs_i32(&at);
    in.x.k = in.x.pitch = bs_i32(&at);
    bs_outputs out = bs_outputs_of(block->x, bs_i32(&at));
    out.w[0] = w;
    floats to = {y, out.n, out.from, out.count};
    bs_multiply(&in, &out, (bs_taker){put_floats, &to}, shared);
}

/* --- xglu -------------------------------------------------------------------------------------- */

typedef struct {
    bs_forms out;
    int n, from, count, act;
} gated;

static void put_gated(const void *to, size_t pair, const float *sums)
{
    const gated *g = to;
    float made[BS_TILE];
    bs_gate(sums, g->count, g->act, made);
    bs_put_forms(g->out, pair * (size_t)g->n + (size_t)g->from, made, g->count);
}

/* One tile of a gated unit's outputs. */
static void glu_tile(const bs_routed *in, const uint8_t *const w[2], unsigned tile, gated to,
                     bs_scratch *scratch)
{
    bs_outputs out = bs_outputs_of(tile, to.n);
    out.stacks = 2;
    for (int i = 0; i < 2; i++) out.w[i] = w[i];
    to.from = out.from;
    to.count = out.count;
    bs_multiply(in, &out, (bs_taker){put_gated, &to}, scratch);
}

/* The dot product that a float32 matrix's row would have with `x`. */
static float dot(const float *x, const float *w, int k)
{
    vf sum = {0};
    for (int i = 0; i < k; i += VL) {
        int n = bs_min(VL, k - i);
        sum = vf_fma(vf_load_n(x + i, n), vf_load_n(w + i, n), sum);
    }
    return vf_sum(sum);
}

/* How much each row takes of the shared network; rows are dealt out among the blocks. */
static void share_rows(const float *x, const float *w, int rows, int k, const bs_dim3 *block,
                       const bs_dim3 *grid, float *share)
{
    for (int r = (int)block->x; r < rows; r += (int)grid->x)
        share[r] = vf_sigmoid(vf_set(dot(x + (size_t)r * (size_t)k, w, k)))[0];
}

static BS_INLINE void xglu_entry(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid,
                                 void *shared, int reads, int with, int to_float, int to_codes)
{
    bs_cursor at = args;
    bs_routed in = bs_routed_in(&at, reads);
    const uint8_t *w[2], *own[2] = {0};
    for (int i = 0; i < 2; i++) w[i] = bs_ptr(&at);
    for (int i = 0; i < 2 && with; i++) own[i] = bs_ptr(&at);
    const float *gate_x = 0, *gate_w = 0;
    if (with == 2) {
        gate_x = bs_ptr(&at);
        gate_w = bs_ptr(&at);
    }
    gated to = {0}, also = {0};
    to.out = bs_forms_out(&at, to_float, to_codes);
    if (with) also.out = bs_forms_out(&at, to_float, to_codes);
    float *share = with == 2 ? bs_ptr(&at) : 0;
    in.rows = bs_i32(&at);
    in.chosen = bs_i32(&at);
    in.units = 1;
    in.x.k = in.x.pitch = bs_i32(&at);
    to.n = bs_i32(&at);
    to.act = also.act = bs_i32(&at);
    glu_tile(&in, w, block->x, to, shared);
    if (!with) return;
    also.n = bs_i32(&at);
    bs_routed all = {in.x, 0, 0, in.rows, 1, 1};
    for (unsigned tile = block->x; (int)tile * BS_TILE < also.n; tile += grid->x)
        glu_tile(&all, own, tile, also, shared);
    if (share) share_rows(gate_x, gate_w, in.rows, in.x.k, block, grid, share);
}

/* --- xdown ------------------------------------------------------------------------------------- */

#define MOST_SUMS 1024 /* pairs whose products are kept until their row is summed */

typedef struct {
    float (*sums)[BS_TILE];
    size_t first;
    int count;
} partial;

static void put_partial(const void *to, size_t pair, const float *sums)
{
    const partial *p = to;
    memcpy(p->sums[pair - p->first], sums, (size_t)p->count * sizeof(float));
}

/* What every row's sum is made of: weighted choices, then a shared network's part. */
typedef struct {
    const float *weights, *share;
    int chosen;
} mix;

static void sum_row(const mix *m, size_t row, const float (*chosen)[BS_TILE], const float *own, int count,
                    float *y)
{
    for (int i = 0; i < count; i += VL) {
        int n = bs_min(VL, count - i);
        vf total = {0};
        for (int j = 0; j < m->chosen; j++)
            total += vf_load_n(chosen[j] + i, n) * m->weights[row * (size_t)m->chosen + (size_t)j];
        if (own) {
            vf part = vf_load_n(own + i, n);
            total += m->share ? (vf){0} + part * m->share[row] : part;
        }
        vf_store_n(y + i, total, n);
    }
}

static BS_INLINE void xdown_entry(const bs_arg *args, const bs_dim3 *block, void *shared, int reads,
                                  int with)
{
    bs_cursor at = args;
    bs_routed in = bs_routed_in(&at, reads), own = {0};
    mix m = {0};
    m.weights = bs_ptr(&at);
    const uint8_t *w = bs_ptr(&at), *own_w = 0;
    if (with) {
        own.x = bs_activations_in(&at, reads);
        own_w = bs_ptr(&at);
    }
    if (with == 2) m.share = bs_ptr(&at);
    float *y = bs_ptr(&at);
    int rows = bs_i32(&at);
    m.chosen = in.chosen = in.units = bs_i32(&at);
    in.x.k = in.x.pitch = bs_i32(&at);
    bs_outputs out = bs_outputs_of(block->x, bs_i32(&at));
    if (with) own.x.k = own.x.pitch = bs_i32(&at);
    own.chosen = own.units = 1;
    int each = bs_min(bs_max(MOST_SUMS / m.chosen, 1), BS_CHUNK);
    for (int first = 0; first < rows; first += each) {
        float sums[MOST_SUMS][BS_TILE], own_sums[BS_CHUNK][BS_TILE];
        in.first = own.first = first;
        in.rows = own.rows = bs_min(each, rows - first);
        partial to = {sums, (size_t)first * (size_t)m.chosen, out.count};
        out.w[0] = w;
        bs_multiply(&in, &out, (bs_taker){put_partial, &to}, shared);
        to = (partial){own_sums, (size_t)first, out.count};
        out.w[0] = own_w;
        if (with) bs_multiply(&own, &out, (bs_taker){put_partial, &to}, shared);
        for (int r = 0; r < in.rows; r++) {
            size_t row = (size_t)(first + r);
            sum_row(&m, row, (const float (*)[BS_TILE])sums + r * m.chosen, with ? own_sums[r] : 0, out.count,
                    y + row * (size_t)out.n + (size_t)out.from);
        }
    }
}

/* --- route ------------------------------------------------------------------------------------- */

#define ROWS 8 /* of a block */

typedef struct {
    bs_choice choice;
    const float *bias;
    int fn, normalise;
    float factor;
} router;

/* Logits of rows [first, first + rows), [rows, experts]. */
static void route_logits(const bs_activations *a, const uint8_t *w, int experts, int first, int rows,
                         bs_scratch *scratch, float *logits)
{
    for (int from = 0; from < experts; from += BS_LIST) {
        bs_outputs out = {{w}, 1, experts, from, bs_min(BS_LIST, experts - from)};
        bs_weight_rows list;
        bs_list_expert(&out, 0, a->k, &list);
        bs_product(a, &list, (size_t)first, rows, scratch);
        for (int r = 0; r < rows; r++)
            memcpy(logits + (size_t)r * (size_t)experts + (size_t)from, scratch->sums[r],
                   (size_t)out.count * sizeof(float));
    }
}

static void route_row(const router *r, float *scores, int32_t *ids, float *weights)
{
    float memory[BS_MOST_EXPERTS * BS_BALLOT_BYTES / sizeof(float)];
    bs_score(scores, r->choice.experts, r->fn, scores);
    bs_topk(scores, r->bias, &r->choice, bs_ballot_at(memory, r->choice.experts), ids);
    bs_renorm(scores, ids, r->choice.chosen, r->normalise, r->factor, weights);
}

static BS_INLINE void route_entry(const bs_arg *args, const bs_dim3 *block, void *shared, int reads,
                                  int biased)
{
    bs_cursor at = args;
    bs_activations a = bs_activations_in(&at, reads);
    const uint8_t *w = bs_ptr(&at);
    router r = {0};
    if (biased) r.bias = bs_ptr(&at);
    int32_t *ids = bs_ptr(&at);
    float *weights = bs_ptr(&at), scores[ROWS * BS_MOST_EXPERTS];
    int rows = bs_i32(&at), first = ROWS * (int)block->x, count = bs_min(ROWS, rows - first);
    a.k = a.pitch = bs_i32(&at);
    r.choice = bs_choice_in(&at);
    r.fn = bs_i32(&at);
    r.normalise = bs_i32(&at);
    r.factor = bs_f32(&at);
    route_logits(&a, w, r.choice.experts, first, count, shared, scores);
    for (int i = 0; i < count; i++) {
        size_t place = (size_t)(first + i) * (size_t)r.choice.chosen;
        route_row(&r, scores + i * r.choice.experts, ids + place, weights + place);
    }
}

/* --- entries ----------------------------------------------------------------------------------- */

#define X "in buffer<f32>, "
#define XQ "in buffer<i8>, in buffer<f32>, in buffer<i32>, "
#define IDS "in buffer<i32>, "
#define W "in buffer<" BS_W ">, "
#define Y "out buffer<f32>, "
#define YQ "out buffer<i8>, out buffer<f32>, out buffer<i32>, "

#define ENTRY(family, suffix, types, call)      \
    BS_KERNEL(BS_ENTRY(family, suffix), types)  \
    {                                           \
        BS_UNUSED(grid);                        \
        call;                                   \
    }

#define ROUTE(form, suffix, x, bias, reads, biased)                                                 \
    ENTRY(route##form, suffix, x W bias "out buffer<i32>, " Y                                           \
          "i32, i32, i32, i32, i32, i32, i32, i32, i32, f32",                                           \
          route_entry(args, block, shared, reads, biased))

#define XGLU(family, suffix, ins, outs, sizes, ...)                                                     \
    ENTRY(family, suffix, ins outs sizes, xglu_entry(args, block, grid, shared, __VA_ARGS__))

#define XGLU_FORMS(form, suffix, x, y, reads, to_float, to_codes)                                   \
    XGLU(xglu##form, suffix, x IDS W W, y, "i32, i32, i32, i32, i32", reads, 0, to_float, to_codes) \
    XGLU(xglu_s##form, suffix, x IDS W W W W, y y, "i32, i32, i32, i32, i32, i32", reads, 1,        \
         to_float, to_codes)                                                                            \
    XGLU(xglu_sg##form, suffix, x IDS W W W W X X, y y Y, "i32, i32, i32, i32, i32, i32", reads, 2, \
         to_float, to_codes)

#define XDOWN(family, own, sizes, x, reads, with)                                                   \
    ENTRY(family, , x IDS X W own Y sizes, xdown_entry(args, block, shared, reads, with))

#define FORMS(form, x, reads)                                                                       \
    ROUTE(form, , x, , reads, 0)                                                                    \
    ROUTE(form, _b, x, X, reads, 1)                                                                 \
    ENTRY(xlinear##form, , x IDS W Y "i32, i32, i32, i32, i32",                                         \
          xlinear_entry(args, block, shared, reads))                                                \
    XGLU_FORMS(form, , x, Y, reads, 1, 0)                                                           \
    XGLU_FORMS(form, _q, x, YQ, reads, 0, 1)                                                        \
    XGLU_FORMS(form, _fq, x, Y YQ, reads, 1, 1)                                                     \
    XDOWN(xdown##form, , "i32, i32, i32, i32", x, reads, 0)                                         \
    XDOWN(xdown_s##form, x W, "i32, i32, i32, i32, i32", x, reads, 1)                               \
    XDOWN(xdown_sg##form, x W X, "i32, i32, i32, i32, i32", x, reads, 2)

FORMS(_, X, BS_AS_FLOATS)
#if !BS_DENSE
FORMS(_q_, XQ, BS_AS_CODES)
#elif BS_FORMAT == BS_BF16
FORMS(_r_, X, BS_MAY_ROUND)
#endif
