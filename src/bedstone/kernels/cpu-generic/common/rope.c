/* rope, rope_parts: rotate each head of a row by the row's position; a block is a row. */
#include <norm.h>
#include <part.h>

#define PAIR_NEIGHBOURS 1 /* kind: values 2i and 2i + 1 turn together, else i and i + rot / 2 */

/* Values [offset, offset + rot) of each head turn. */
typedef struct {
    const float *cos, *sin; /* [rot / 2], of the row's position */
    int head_dim, rot, kind, offset;
} rotation;

/* One input of `heads` heads and where its rows go. */
typedef struct {
    const float *x, *w; /* w null: heads are not normed first */
    bs_window window;
    bs_place to;
    int heads;
} rotated;

static void turn_halves(const float *x, const rotation *turn, float *y)
{
    int half = turn->rot / 2;
    for (int i = 0; i < half; i += VL) {
        int n = bs_min(VL, half - i);
        vf a = vf_load_n(x + i, n), b = vf_load_n(x + half + i, n);
        vf c = vf_load_n(turn->cos + i, n), s = vf_load_n(turn->sin + i, n);
        vf_store_n(y + i, a * c - b * s, n);
        vf_store_n(y + half + i, b * c + a * s, n);
    }
}

static void turn_neighbours(const float *x, const rotation *turn, float *y)
{
    for (int i = 0; i < turn->rot / 2; i++) {
        float a = x[2 * i], b = x[2 * i + 1], c = turn->cos[i], s = turn->sin[i];
        y[2 * i] = a * c - b * s;
        y[2 * i + 1] = b * c + a * s;
    }
}

static void rotate_head(const rotated *part, const rotation *turn, bs_norm norm, size_t row, int head, float *y)
{
    int head_dim = turn->head_dim, end = turn->offset + turn->rot;
    const float *x = bs_window_values(part->x, part->window, row, head * head_dim, head_dim, y);
    if (part->w) {
        bs_norm_unit(x, part->w, norm, y);
        x = y;
    }
    if (turn->kind == PAIR_NEIGHBOURS) turn_neighbours(x + turn->offset, turn, y + turn->offset);
    else turn_halves(x + turn->offset, turn, y + turn->offset);
    if (x == y) return;
    memcpy(y, x, sizeof(float) * (size_t)turn->offset);
    memcpy(y + end, x + end, sizeof(float) * (size_t)(head_dim - end));
}

static void rotate_row(const rotated *part, const rotation *turn, bs_norm norm, size_t row, float *laid)
{
    ptrdiff_t to = bs_place_of(&part->to, row);
    for (int h = 0; to >= 0 && h < part->heads; h++, to += turn->head_dim) {
        float *y = bs_place_make(&part->to, to, laid);
        rotate_head(part, turn, norm, row, h, y);
        bs_place_put(&part->to, to, y, turn->head_dim);
    }
}

/* How an entry differs from the plainest: several inputs, norms, windows, where the last one goes. */
typedef struct {
    int count, normed, windowed, to_table, to_columns;
} form;

typedef struct {
    rotated parts[2];
    rotation turn;
    bs_norm norm;
    const int32_t *position;
} operands;

static BS_INLINE void read_buffers(bs_cursor *at, form f, operands *o)
{
    for (int i = 0; i < f.count; i++) o->parts[i].x = bs_ptr(at);
    for (int i = 0; i < f.count && f.normed; i++) o->parts[i].w = bs_ptr(at);
    o->position = bs_ptr(at);
    o->turn.cos = bs_ptr(at);
    o->turn.sin = bs_ptr(at);
    for (int i = 0; i < f.count; i++) o->parts[i].to.y = bs_ptr(at);
    if (f.to_table) o->parts[f.count - 1].to.slot = bs_ptr(at);
}

static BS_INLINE void read_sizes(bs_cursor *at, form f, operands *o)
{
    (*at)++; /* rows: the grid's extent */
    for (int i = 0; i < f.count; i++) o->parts[i].heads = bs_i32(at);
    o->turn.head_dim = o->norm.unit = bs_i32(at);
    o->turn.rot = bs_i32(at);
    o->turn.kind = bs_i32(at);
    if (f.normed) {
        o->norm.eps = bs_f32(at);
        o->norm.plus_one = bs_i32(at);
    }
    for (int i = 0; i < f.count; i++) {
        int width = o->parts[i].to.pitch = o->parts[i].heads * o->turn.head_dim;
        o->parts[i].window = f.windowed ? bs_window_in(at) : (bs_window){width, width, width};
    }
    if (f.windowed) o->turn.offset = bs_i32(at);
    if (f.to_columns) {
        o->parts[f.count - 1].to.pitch = bs_i32(at);
        o->parts[f.count - 1].to.column = bs_i32(at);
    }
}

static BS_INLINE void rope_entry(const bs_arg *args, size_t row, void *shared, form f)
{
    bs_cursor at = args;
    operands o = {0};
    read_buffers(&at, f, &o);
    read_sizes(&at, f, &o);
    size_t angle = (size_t)o.position[row] * (size_t)(o.turn.rot / 2);
    o.turn.cos += angle;
    o.turn.sin += angle;
    for (int i = 0; i < f.count; i++) rotate_row(o.parts + i, &o.turn, o.norm, row, shared);
}

#define X "in buffer<f32>, "
#define WHERE "in buffer<i32>, in buffer<f32>, in buffer<f32>, "
#define Y "out buffer<f32>, "
#define TABLE "inout state, in buffer<i32>, "
#define ONE "i32, i32, i32, i32, i32"
#define TWO "i32, i32, i32, i32, i32, i32"
#define NORM ", f32, i32"
#define WINDOW ", i32, i32, i32"
#define COLUMNS ", i32, i32"

#define ROPE(entry, types, ...)                                  \
    BS_KERNEL(entry, types)                                      \
    {                                                            \
        BS_UNUSED(grid);                                         \
        rope_entry(args, block->x, shared, (form){__VA_ARGS__}); \
    }

/* By where the last input's rows go; `outs` are those of the others. */
#define PLACED(stem, ins, outs, sizes, ...)                             \
    ROPE(stem, ins outs Y sizes, __VA_ARGS__, 0, 0)                     \
    ROPE(stem##_rows, ins outs TABLE sizes, __VA_ARGS__, 1, 0)          \
    ROPE(stem##_cols, ins outs TABLE sizes COLUMNS, __VA_ARGS__, 1, 1)

PLACED(rope, X WHERE, , ONE, 1, 0, 0)
PLACED(rope_n, X X WHERE, , ONE NORM, 1, 1, 0)
PLACED(rope_p, X WHERE, , ONE WINDOW ", i32", 1, 0, 1)
PLACED(rope_n_p, X X WHERE, , ONE NORM WINDOW ", i32", 1, 1, 1)
PLACED(rope_parts, X X WHERE, Y, TWO, 2, 0, 0)
PLACED(rope_parts_n, X X X X WHERE, Y, TWO NORM, 2, 1, 0)
PLACED(rope_parts_p, X X WHERE, Y, TWO WINDOW WINDOW ", i32", 2, 0, 1)
PLACED(rope_parts_n_p, X X X X WHERE, Y, TWO NORM WINDOW WINDOW ", i32", 2, 1, 1)
