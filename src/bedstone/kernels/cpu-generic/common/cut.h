/* Which logits of a row take part in a draw, found without sorting it.
 *
 * A logit weighs e^((logit - largest) / temperature) in steps of 2^-30. Weights are integers, so
 * their sums are exact whatever the order, and so is every comparison with one. LEFT_OUT, the
 * least float there is, stands for what cannot be drawn.
 *
 * The largest logit of each tile is kept, so that later passes only look at tiles that matter.
 */
#ifndef BS_CUT_H
#define BS_CUT_H

#include <search.h>

#define LEFT_OUT (-0x1.fffffep+127f)
#define ONE (1 << 30)     /* what the largest logit weighs */
#define MOST_TILES 2048
#define DIGIT 11          /* bits of a digit of a key, at most */

typedef struct {
    const float *x;
    int count, tile, tiles;
    float largest, temperature;
    const float *tops;    /* the largest of each tile */
} row;

/* What takes part: logits above `value`, and those equal to it up to the index `last`. */
typedef struct {
    float value;
    int last;
} cut;

BS_STATIC int tile_of(int count) { return 128 * bs_ceil_div(count, 128 * MOST_TILES); }
BS_STATIC int tile_end(const row *r, int t) { return bs_min(r->tile * (t + 1), r->count); }

/* The largest of each tile into `tops`. */
BS_STATIC void survey(const float *x, int count, float *tops)
{
    int tile = tile_of(count);
    vf poison = {0};
    for (int t = 0; t * tile < count; t++)
        tops[t] = largest(x + t * tile, bs_min(tile, count - t * tile), &poison);
}

/* VL logits from `i` on; behind the end nothing that could be drawn. */
static BS_INLINE vf logits_at(const row *r, int i)
{
    if (i + VL <= r->count) return vf_load(r->x + i);
    float some[VL];
    for (int lane = 0; lane < VL; lane++) some[lane] = i + lane < r->count ? r->x[i + lane] : LEFT_OUT;
    return vf_load(some);
}

static BS_INLINE vi weights_of(const row *r, vf x)
{
    vf share = vf_exp((x - r->largest) / r->temperature);
    /* where the temperature is infinite, what is left out or far off may have no number for a share */
    return __builtin_convertvector(vf_select((x > LEFT_OUT) & (share >= 0.0f), share, vf_set(0)) * (float)ONE, vi);
}

static BS_INLINE vi lanes_from(int i)
{
    vi lanes;
    for (int lane = 0; lane < VL; lane++) lanes[lane] = lane;
    return lanes + i;
}

/* Weights of VL logits from `i` on that take part and weigh `least`; the others are zero. */
static BS_INLINE vi taken_at(const row *r, int i, cut c, int least)
{
    vf x = logits_at(r, i);
    vi w = weights_of(r, x);
    return w & ((x > c.value) | ((x == c.value) & (lanes_from(i) <= c.last))) & (w >= least);
}

/* The weight of each tile's part into `masses`; the sum of all. */
BS_STATIC uint64_t weigh(const row *r, cut c, int least, uint64_t *masses)
{
    uint64_t sum = 0;
    for (int t = 0; t < r->tiles; t++) {
        vi low = {0}, high = {0};
        if (r->tops[t] >= c.value)
            for (int i = t * r->tile, end = tile_end(r, t); i < end; i += VL) {
                vi w = taken_at(r, i, c, least);
                low += w & 0x7fff;
                high += w >> 15;
            }
        uint64_t mass = 0;
        for (int lane = 0; lane < VL; lane++) mass += ((uint64_t)high[lane] << 15) + (uint64_t)low[lane];
        masses[t] = mass;
        sum += mass;
    }
    return sum;
}

/* Integers in the order of the floats; the two zeros are one. */
static BS_INLINE vi keys_of(vf x)
{
    vi bits = (vi)(x + 0.0f);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

static BS_INLINE int32_t key_of(float x) { return keys_of(vf_set(x))[0]; }

static BS_INLINE float of_key(int32_t key)
{
    int32_t bits = key ^ ((key >> 31) & 0x7fffffff);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* What logits are counted by: one each, or their weights. */
typedef enum { COUNT, WEIGHT } measure;

/* Some digit of a key without its sign: its bits, what the digits before it have to be, the least key. */
typedef struct {
    int shift, width;
    uint32_t before;
    int32_t least;
} digit;

static BS_INLINE int any(vi mask) { return vf_max(vf_select(mask, vf_set(1), vf_set(0))) > 0; }

/* Add what a tile's logits come to into `bins`, by the digit, where the digits before it are right. */
static BS_INLINE void sort_tile(const row *r, int t, measure by, digit d, uint64_t *bins)
{
    int above = d.shift + d.width;
    for (int i = t * r->tile, end = tile_end(r, t); i < end; i += VL) {
        vf x = logits_at(r, i);
        vi key = keys_of(x), bare = key ^ INT32_MIN, wanted = (key >= d.least) & (lanes_from(i) < end);
        /* of a key's first digit there is nothing before it */
        if (above < 32) wanted &= ((bare >> above) & (int32_t)((1u << (32 - above)) - 1)) == (int32_t)d.before;
        if (!any(wanted)) continue;
        vi w = (by == WEIGHT ? weights_of(r, x) : (vi){0} + 1) & wanted;
        vi place = (bare >> d.shift) & ((1 << d.width) - 1);
        for (int lane = 0; lane < VL; lane++) bins[place[lane]] += (uint32_t)w[lane];
    }
}

/* A logit, and how much of the amount asked for is left when all above it are taken. */
typedef struct {
    float value;
    uint64_t left;
} found_cut;

/* The largest value from which on logits come to `wanted`; no logit below `least` is needed for it.
 *
 * Digit by digit of the keys, the highest first: what has come together by the largest values says
 * which digit it is. */
BS_STATIC found_cut reaches(const row *r, measure by, uint64_t wanted, float least, uint64_t *bins)
{
    digit d = {32, 0, 0, key_of(least)};
    for (int from = 32; from > 0; from = d.shift) {
        d.width = bs_min(DIGIT, from);
        d.shift = from - d.width;
        memset(bins, 0, sizeof *bins << d.width);
        for (int t = 0; t < r->tiles; t++)
            if (r->tops == NULL || key_of(r->tops[t]) >= d.least) sort_tile(r, t, by, d, bins);
        uint32_t value = (1u << d.width) - 1;
        for (; value > 0 && bins[value] < wanted; value--) wanted -= bins[value];
        d.before = d.before << d.width | value;
        int32_t begins = (int32_t)(d.before << d.shift) ^ INT32_MIN;
        d.least = bs_max(begins, d.least);
    }
    return (found_cut){of_key((int32_t)d.before ^ INT32_MIN), wanted};
}

/* What the largest logits of tiles say of the value that `reaches` looks for: no less than this. */
BS_STATIC float bound_by_tops(const row *r, measure by, uint64_t wanted, float least, uint64_t *bins)
{
    row tops = {r->tops, r->tiles, r->tiles, 1, r->largest, r->temperature, NULL};
    uint64_t all = 0;
    for (int i = 0; i < tops.count; i += VL) {
        vi w = by == WEIGHT ? weights_of(&tops, logits_at(&tops, i)) : (vi){0} + 1;
        for (int lane = 0; lane < bs_min(VL, tops.count - i); lane++) all += (uint32_t)w[lane];
    }
    if (all < wanted) return least;
    float value = reaches(&tops, by, wanted, LEFT_OUT, bins).value;
    return value > least ? value : least;
}

/* The cut that leaves the fewest of the largest logits that come to `wanted`, none that `before` leaves out. */
BS_STATIC cut cut_at(const row *r, measure by, uint64_t wanted, cut before, uint64_t *bins)
{
    float least = bound_by_tops(r, by, wanted, before.value, bins);
    found_cut found = reaches(r, by, wanted, least, bins);
    uint64_t each = by == WEIGHT ? (uint32_t)weights_of(r, vf_set(found.value))[0] : 1;
    uint64_t equals = each ? (found.left + each - 1) / each : 0;
    cut made = {found.value, -1};
    for (int t = 0; t < r->tiles && equals; t++)
        if (r->tops[t] >= found.value)
            for (int i = t * r->tile, end = tile_end(r, t); i < end && equals; i++)
                if (r->x[i] == found.value) {
                    made.last = i;
                    equals--;
                }
    return made;
}

#endif
