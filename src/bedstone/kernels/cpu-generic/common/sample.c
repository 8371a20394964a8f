/* sample, sample_carried: the token drawn from logits; with _rows from those of each row, a block a row.
 *
 * A row with a logit that is not finite draws -1. `finish` makes the tokens those of the step.
 */
#include <cut.h>
#include <philox.h>

/* Scratch of a block. */
typedef struct {
    uint64_t masses[MOST_TILES], bins[1 << DIGIT];
    float tops[MOST_TILES];
} room;

typedef struct {
    float temperature, top_p, min_p;
    int top_k;
    uint64_t seed;
    uint32_t position;    /* of the token to be drawn */
} settings;

/* What a row's edits and its restriction make of its logits, and where that goes. */
typedef struct {
    int edits, restricted;
    const int32_t *token;
    const float *scale, *add;
    const uint32_t *allowed;
    float *scores;
} changes;

/* The high half of a product of 64 bits. */
static uint64_t high_of(uint64_t a, uint64_t b)
{
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* The token at `target` of the weights in line, one after another. */
static int token_at(const row *r, cut c, int least, const uint64_t *masses, uint64_t target)
{
    int t = 0;
    while (t < r->tiles - 1 && masses[t] <= target) target -= masses[t++];
    for (int i = t * r->tile, end = tile_end(r, t); i < end; i += VL) {
        vi w = taken_at(r, i, c, least);
        for (int lane = 0; lane < VL; lane++) {
            if ((uint32_t)w[lane] > target) return i + lane;
            target -= (uint32_t)w[lane];
        }
    }
    return 0;
}

/* Of `mass`, the part that `top_p` asks for: something of it at least. */
static uint64_t part_of(uint64_t mass, float top_p)
{
    double wanted = top_p > 0 ? (double)top_p * (double)mass : 0;
    uint64_t whole = (uint64_t)wanted;
    whole += (double)whole < wanted;
    return whole > 0 ? whole : 1;
}

static int drawn(const float *x, int vocab, best top, const settings *s, room *scratch)
{
    int tile = tile_of(vocab);
    row r = {x, vocab, tile, bs_ceil_div(vocab, tile), top.value, s->temperature, scratch->tops};
    survey(x, vocab, scratch->tops);
    cut c = {LEFT_OUT, -1};
    if (s->top_k > 0 && s->top_k < vocab) c = cut_at(&r, COUNT, (uint64_t)s->top_k, c, scratch->bins);
    if (s->top_p < 1) {
        uint64_t wanted = part_of(weigh(&r, c, 1, scratch->masses), s->top_p);
        c = cut_at(&r, WEIGHT, wanted, c, scratch->bins);
    }
    float likely = s->min_p < 1 ? s->min_p : s->min_p >= 1 ? 1 : 0;
    int least = likely > 0 ? (int)(likely * (float)ONE) : 1;
    uint64_t mass = weigh(&r, c, bs_max(least, 1), scratch->masses);
    uint64_t target = high_of(random_bits(s->seed, s->position), mass);
    return token_at(&r, c, bs_max(least, 1), scratch->masses, target);
}

static float edited(float logit, float scale, float add)
{
    float made = (logit > 0 ? logit / scale : logit * scale) + add;
    if (!(made > LEFT_OUT)) return LEFT_OUT;
    return made < -LEFT_OUT ? made : -LEFT_OUT;
}

/* Leave out tokens whose bits are not set; bits of a word go by together where they are alike. */
static void restrict_to(const uint32_t *allowed, int vocab, float *scores)
{
    for (int from = 0; from < vocab; from += 32) {
        uint32_t word = allowed[from / 32];
        int n = bs_min(32, vocab - from);
        if (word == 0xffffffffu) continue;
        if (word == 0)
            for (int i = 0; i < n; i++) scores[from + i] = LEFT_OUT;
        else
            for (int i = 0; i < n; i++)
                if (!(word >> i & 1)) scores[from + i] = LEFT_OUT;
    }
}

static void change(const float *logits, int vocab, const changes *made)
{
    float *scores = made->scores;
    memcpy(scores, logits, (size_t)vocab * sizeof *scores);
    for (int e = 0; e < made->edits; e++) {
        uint32_t token = (uint32_t)made->token[e];
        if (token < (uint32_t)vocab) scores[token] = edited(scores[token], made->scale[e], made->add[e]);
    }
    if (made->restricted) restrict_to(made->allowed, vocab, scores);
}

/* The token of a row whose logits are finite, `top` the likeliest of them. */
static int token_of(const float *logits, int vocab, best top, const settings *s, const changes *made, room *scratch)
{
    if (made != NULL && (made->edits > 0 || made->restricted)) {
        change(logits, vocab, made);
        best left = search(made->scores, vocab);
        /* nothing may come: what would have come unchanged does */
        if (left.value <= LEFT_OUT) return top.index;
        logits = made->scores;
        top = left;
    }
    if (!(s->temperature > 0) || top.value <= LEFT_OUT) return top.index;
    return drawn(logits, vocab, top, s, scratch);
}

/* --- log-probabilities ------------------------------------------------------------------------- */

/* ln x of x >= 1: of what remains of it between the roots of 1/2 and 2, by the series in (x - 1) / (x + 1). */
static double log_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int power = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
    memcpy(&x, &bits, sizeof x);
    if (x > 0x1.6a09e667f3bcdp+0) {
        x *= 0.5;
        power++;
    }
    double s = (x - 1) / (x + 1), z = s * s, sum = 0;
    for (int n = 21; n > 0; n -= 2) sum = sum * z + 2.0 / n;
    return power * 0x1.62e42fefa39efp-1 + s * sum;
}

/* ln of the sum of e^(x - largest). */
static double log_sum(const float *x, int vocab, float largest)
{
    double sum = 0;
    for (int from = 0; from < vocab; from += BS_CHUNK) {
        vf part = {0};
        int end = bs_min(from + BS_CHUNK, vocab), i = from;
        for (; i + VL <= end; i += VL) part += vf_exp(vf_load(x + i) - largest);
        for (int lane = 0; lane < VL; lane++) sum += (double)part[lane];
        for (; i < end; i++) sum += (double)vf_exp(vf_set(x[i] - largest))[0];
    }
    return log_of(sum);
}

typedef struct {
    int asked, most;
    float *own, *values;
    int32_t *tokens;
} report;

/* The first tile with the largest top. */
static int best_tile(const float *tops, int tiles)
{
    vf poison = {0};
    return find(tops, 0, tiles, largest(tops, tiles, &poison));
}

/* The likeliest, one after another; of a tile whose best is taken the next takes its place. */
static void tell(const float *x, int vocab, best top, int token, const report *to, room *scratch)
{
    double all = (double)top.value + log_sum(x, vocab, top.value);
    int tile = tile_of(vocab), tiles = bs_ceil_div(vocab, tile);
    *to->own = (float)((double)x[token] - all);
    int n = bs_min(bs_min(to->asked, to->most), vocab);
    if (n > 0) survey(x, vocab, scratch->tops);
    for (int t = 0; t < tiles && n > 0; t++) scratch->masses[t] = 0;
    for (int rank = 0; rank < n; rank++) {
        int t = best_tile(scratch->tops, tiles), end = bs_min(t * tile + tile, vocab);
        /* up to here equals of the tile's best have been taken */
        int from = bs_max(t * tile, (int)scratch->masses[t]);
        float value = scratch->tops[t], next = -BS_INFINITY;
        int i = find(x, from, end - from, value), equal = 0;
        to->tokens[rank] = i;
        to->values[rank] = (float)((double)value - all);
        for (int j = t * tile; j < end; j++) {
            equal |= j > i && x[j] == value;
            next = x[j] < value && x[j] > next ? x[j] : next;
        }
        scratch->masses[t] = equal ? (uint64_t)(i + 1) : 0;
        scratch->tops[t] = equal ? value : next;
    }
}

/* --- entries ----------------------------------------------------------------------------------- */

typedef struct {
    const float *temperature, *top_p, *min_p;
    const int32_t *top_k;
    const int64_t *seed;
} knobs;

static knobs read_knobs(bs_cursor *at)
{
    knobs k;
    k.temperature = bs_ptr(at);
    k.top_k = bs_ptr(at);
    k.top_p = bs_ptr(at);
    k.min_p = bs_ptr(at);
    k.seed = bs_ptr(at);
    return k;
}

/* Of sequence `r`, whose last row is at `position`: the token is that of the place behind it. */
static settings settings_of(const knobs *k, int r, int position)
{
    return (settings){k->temperature[r], k->top_p[r], k->min_p[r], k->top_k[r], (uint64_t)k->seed[r],
                      (uint32_t)position + 1};
}

/* The token of sequence `r`, which all rows belong to where it is `alone`, else row `r`. */
static void sample_row(bs_cursor at, int r, int alone, void *shared)
{
    const float *logits = bs_ptr(&at);
    const int32_t *position = bs_ptr(&at);
    knobs k = read_knobs(&at);
    const int32_t *edits = bs_ptr(&at), *edit_token = bs_ptr(&at);
    const float *edit_scale = bs_ptr(&at), *edit_add = bs_ptr(&at);
    const int32_t *restricted = bs_ptr(&at);
    const uint32_t *allowed = bs_ptr(&at);
    const int32_t *asked = bs_ptr(&at);
    int32_t *token = bs_ptr(&at);
    float *scores = bs_ptr(&at), *logprob = bs_ptr(&at);
    int32_t *top_token = bs_ptr(&at);
    float *top_logprob = bs_ptr(&at), *to_temperature = bs_ptr(&at);
    int32_t *to_top_k = bs_ptr(&at);
    float *to_top_p = bs_ptr(&at), *to_min_p = bs_ptr(&at);
    int64_t *to_seed = bs_ptr(&at);
    int rows = bs_i32(&at), vocab = bs_i32(&at), most_edits = bs_i32(&at), most = bs_i32(&at);

    size_t first = (size_t)r * (size_t)vocab, edit = (size_t)r * (size_t)most_edits;
    size_t words = (size_t)bs_ceil_div(vocab, 32) * (size_t)r, told = (size_t)r * (size_t)most;
    const float *x = logits + first;
    settings s = settings_of(&k, r, position[alone ? rows - 1 : r]);
    to_temperature[r] = s.temperature;
    to_top_k[r] = s.top_k;
    to_top_p[r] = s.top_p;
    to_min_p[r] = s.min_p;
    to_seed[r] = (int64_t)s.seed;
    best top = search(x, vocab);
    token[r] = -1;
    if (!top.finite) return;
    changes made = {bs_min(edits[r], most_edits), restricted[r], edit_token + edit, edit_scale + edit,
                    edit_add + edit, allowed + words, scores + first};
    token[r] = token_of(x, vocab, top, &s, &made, shared);
    report to = {asked[r], most, logprob + r, top_logprob + told, top_token + told};
    if (to.asked >= 0) tell(x, vocab, top, token[r], &to, shared);
}

/* The same as the step before left it, with nothing asked besides. */
static void sample_row_carried(bs_cursor at, int r, int alone, void *shared)
{
    const float *logits = bs_ptr(&at);
    const int32_t *position = bs_ptr(&at);
    knobs k = read_knobs(&at);
    int32_t *token = bs_ptr(&at);
    int rows = bs_i32(&at), vocab = bs_i32(&at);

    const float *x = logits + (size_t)r * (size_t)vocab;
    settings s = settings_of(&k, r, position[alone ? rows - 1 : r]);
    best top = search(x, vocab);
    token[r] = top.finite ? token_of(x, vocab, top, &s, NULL, shared) : -1;
}

#define READ "in buffer<f32>, in buffer<i32>, in buffer<f32>, in buffer<i32>, in buffer<f32>, in buffer<f32>, in buffer<i64>, "
#define CHANGES "in buffer<i32>, in buffer<i32>, in buffer<f32>, in buffer<f32>, in buffer<i32>, in buffer<i32>, in buffer<i32>, "
#define TOLD "out buffer<i32>, out buffer<f32>, out buffer<f32>, out buffer<i32>, out buffer<f32>, "
#define KEPT "out buffer<f32>, out buffer<i32>, out buffer<f32>, out buffer<f32>, out buffer<i64>, "

BS_KERNEL(sample, READ CHANGES TOLD KEPT "i32, i32, i32, i32")
{
    BS_UNUSED(block);
    BS_UNUSED(grid);
    sample_row(args, 0, 1, shared);
}

BS_KERNEL(sample_rows, READ CHANGES TOLD KEPT "i32, i32, i32, i32")
{
    BS_UNUSED(grid);
    sample_row(args, (int)block->x, 0, shared);
}

BS_KERNEL(sample_carried, READ "out buffer<i32>, i32, i32")
{
    BS_UNUSED(block);
    BS_UNUSED(grid);
    sample_row_carried(args, 0, 1, shared);
}

BS_KERNEL(sample_carried_rows, READ "out buffer<i32>, i32, i32")
{
    BS_UNUSED(grid);
    sample_row_carried(args, (int)block->x, 0, shared);
}
