/* conv, conv_parts2, conv_parts3: causal convolutions of each channel along the rows of a sequence.
 *
 * A block is a share of each part's channels in one sequence: whole units where heads are brought to
 * unit length. A sequence keeps its last rows in a ring, oldest first; one that begins starts from
 * zeros, whatever its line holds.
 */
#include <norm.h>
#include <part.h>

#define MOST_PARTS 3

typedef struct {
    const float *x, *w;
    float *ring, *y;
    bs_window window;
    int channels, unit; /* unit 0: results are left as they are */
} part;

/* One sequence: its rows of the launch, and the line it keeps. */
typedef struct {
    size_t first, rows, line;
    int begins, taps, act;
    float eps;
} sequence;

/* Up to VL channels from `from` on, of one part. */
typedef struct {
    const part *of;
    const float *x; /* of the sequence's first row */
    float *ring, *y;
    int count;
    const vf *taps; /* a vector a tap */
} channels;

static void load_taps(const part *p, int from, int count, int taps, vf *out)
{
    for (int t = 0; t < taps; t++) {
        float lanes[VL] = {0};
        for (int i = 0; i < count; i++) lanes[i] = p->w[(size_t)(from + i) * (size_t)taps + (size_t)t];
        out[t] = vf_load(lanes);
    }
}

/* Row `row` of the sequence; those before its first are the ring's. */
static BS_INLINE vf input(const sequence *s, const channels *c, long row)
{
    if (row < 0) {
        if (s->begins) return (vf){0};
        return vf_load_n(c->ring + (size_t)(row + s->taps - 1) * (size_t)c->of->channels, c->count);
    }
    return vf_load_n(c->x + (size_t)row * (size_t)c->of->window.row, c->count);
}

static BS_INLINE vf activated(vf v, int act)
{
    return act == 1 ? vf_silu(v) : act == 2 ? vf_gelu_tanh(v) : v;
}

static void convolve(const sequence *s, const channels *c)
{
    float *y = c->y;
    for (size_t r = 0; r < s->rows; r++, y += c->of->channels) {
        vf sum = {0};
        for (int t = 0; t < s->taps; t++)
            sum = vf_fma(input(s, c, (long)r + t - (s->taps - 1)), c->taps[t], sum);
        vf_store_n(y, activated(sum, s->act), c->count);
    }
    /* each row moves towards the front, so none is read after it was written over */
    for (int t = 0; t < s->taps - 1; t++) {
        vf last = input(s, c, (long)s->rows + t - (s->taps - 1));
        vf_store_n(c->ring + (size_t)t * (size_t)c->of->channels, last, c->count);
    }
}

/* Channels [from, to) of a part. */
static void convolve_part(const sequence *s, const part *p, int from, int to, vf *taps)
{
    float *ring = p->ring + s->line * (size_t)(s->taps - 1) * (size_t)p->channels;
    float *y = p->y + s->first * (size_t)p->channels;
    for (int i = from; i < to;) {
        int count = bs_min(VL, bs_window_run(p->window, i, to));
        load_taps(p, i, count, s->taps, taps);
        channels c = {p, p->x + bs_window_at(p->window, s->first, i), ring + i, y + i, count, taps};
        convolve(s, &c);
        i += count;
    }
    for (size_t r = 0; p->unit && r < s->rows; r++, y += p->channels)
        for (int i = from; i < to; i += p->unit) bs_l2_unit(y + i, p->unit, s->eps, y + i);
}

static BS_INLINE void conv_entry(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid,
                                 void *shared, int count)
{
    bs_cursor at = args;
    part parts[MOST_PARTS] = {{0}};
    for (int i = 0; i < count; i++) {
        parts[i].x = bs_ptr(&at);
        parts[i].w = bs_ptr(&at);
        parts[i].ring = bs_ptr(&at);
    }
    const int32_t *line = bs_ptr(&at), *position = bs_ptr(&at);
    for (int i = 0; i < count; i++) parts[i].y = bs_ptr(&at);
    int rows = bs_i32(&at), seqs = bs_i32(&at);
    for (int i = 0; i < count; i++) parts[i].channels = bs_i32(&at);
    sequence s = {0};
    s.taps = bs_i32(&at);
    s.act = bs_i32(&at);
    for (int i = 0; i < count; i++) parts[i].unit = bs_i32(&at);
    s.eps = bs_f32(&at);
    for (int i = 0; i < count; i++) parts[i].window = bs_window_in(&at);
    s.rows = (size_t)(rows / seqs);
    s.first = block->y * s.rows;
    s.line = (size_t)line[block->y];
    s.begins = position[s.first] == 0;
    for (int i = 0; i < count; i++) {
        int unit = bs_max(parts[i].unit, 1), units = parts[i].channels / unit;
        int each = bs_ceil_div(units, (int)grid->x), from = bs_min(each * (int)block->x, units);
        int to = bs_min(from + each, units);
        convolve_part(&s, parts + i, from * unit, to * unit, shared);
    }
}

#define IN "in buffer<f32>, in buffer<f32>, inout state, "
#define WHERE "in buffer<i32>, in buffer<i32>, "
#define Y "out buffer<f32>, "
#define WINDOW ", i32, i32, i32"

#define CONV(entry, types, count)                            \
    BS_KERNEL(entry, types)                                  \
    {                                                        \
        conv_entry(args, block, grid, shared, count);        \
    }

CONV(conv, IN WHERE Y "i32, i32, i32, i32, i32, i32, f32" WINDOW, 1)
CONV(conv_parts2, IN IN WHERE Y Y "i32, i32, i32, i32, i32, i32, i32, i32, f32" WINDOW WINDOW, 2)
CONV(conv_parts3, IN IN IN WHERE Y Y Y "i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, f32"
     WINDOW WINDOW WINDOW, 3)
