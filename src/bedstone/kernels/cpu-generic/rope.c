/* rope, rope_parts: rotate each head of a row by the row's position; a block is a row. */
#include <norm.h>

#define PAIR_NEIGHBOURS 1 /* kind: values 2i and 2i + 1 turn together, else i and i + rot / 2 */

typedef struct {
    const float *cos, *sin; /* [rot / 2], of the row's position */
    int head_dim, rot, kind;
} rotation;

/* One input of `heads` heads and where its rows go. */
typedef struct {
    const float *x, *w;
    float *y;
    const int32_t *slot;
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

static void rotate_row(rotated part, const rotation *turn, const bs_norm *norm, size_t row)
{
    size_t width = (size_t)part.heads * (size_t)turn->head_dim, to = row;
    if (part.slot) {
        if (part.slot[row] < 0) return;
        to = (size_t)part.slot[row];
    }
    for (int h = 0; h < part.heads; h++) {
        size_t head = (size_t)h * (size_t)turn->head_dim;
        const float *x = part.x + row * width + head;
        float *y = part.y + to * width + head;
        if (norm) {
            bs_norm_unit(x, part.w, *norm, y);
            x = y;
        }
        if (turn->kind == PAIR_NEIGHBOURS) turn_neighbours(x, turn, y);
        else turn_halves(x, turn, y);
        if (!norm)
            memcpy(y + turn->rot, x + turn->rot, sizeof(float) * (size_t)(turn->head_dim - turn->rot));
    }
}

static BS_INLINE void rope_entry(const bs_arg *args, const bs_dim3 *block, int count, int normed,
                                 int to_table)
{
    bs_cursor at = args;
    rotated parts[2] = {{0}};
    size_t row = block->x;
    for (int i = 0; i < count; i++) parts[i].x = bs_ptr(&at);
    if (normed)
        for (int i = 0; i < count; i++) parts[i].w = bs_ptr(&at);
    const int32_t *position = bs_ptr(&at);
    rotation turn;
    turn.cos = bs_ptr(&at);
    turn.sin = bs_ptr(&at);
    for (int i = 0; i < count; i++) parts[i].y = bs_ptr(&at);
    if (to_table) parts[count - 1].slot = bs_ptr(&at);
    at++; /* rows: the grid's extent */
    for (int i = 0; i < count; i++) parts[i].heads = bs_i32(&at);
    turn.head_dim = bs_i32(&at);
    turn.rot = bs_i32(&at);
    turn.kind = bs_i32(&at);
    bs_norm norm = {turn.head_dim, 0.0f, 0};
    if (normed) {
        norm.eps = bs_f32(&at);
        norm.plus_one = bs_i32(&at);
    }
    size_t angle = (size_t)position[row] * (size_t)(turn.rot / 2);
    turn.cos += angle;
    turn.sin += angle;
    for (int i = 0; i < count; i++) rotate_row(parts[i], &turn, normed ? &norm : 0, row);
}

#define X "in buffer<f32>, "
#define WHERE "in buffer<i32>, in buffer<f32>, in buffer<f32>, "
#define Y "out buffer<f32>, "
#define TABLE "inout state, in buffer<i32>, "
#define ONE "i32, i32, i32, i32, i32"
#define TWO "i32, i32, i32, i32, i32, i32"
#define NORM ", f32, i32"

#define ROPE(entry, types, count, normed, to_table)          \
    BS_KERNEL(entry, types)                                  \
    {                                                        \
        BS_UNUSED(grid);                                     \
        BS_UNUSED(shared);                                   \
        rope_entry(args, block, count, normed, to_table);    \
    }

ROPE(rope, X WHERE Y ONE, 1, 0, 0)
ROPE(rope_rows, X WHERE TABLE ONE, 1, 0, 1)
ROPE(rope_n, X X WHERE Y ONE NORM, 1, 1, 0)
ROPE(rope_n_rows, X X WHERE TABLE ONE NORM, 1, 1, 1)
ROPE(rope_parts, X X WHERE Y Y TWO, 2, 0, 0)
ROPE(rope_parts_rows, X X WHERE Y TABLE TWO, 2, 0, 1)
ROPE(rope_parts_n, X X X X WHERE Y Y TWO NORM, 2, 1, 0)
ROPE(rope_parts_n_rows, X X X X WHERE Y TABLE TWO NORM, 2, 1, 1)
