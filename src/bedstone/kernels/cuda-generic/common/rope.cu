// rope, rope_parts: rotate each head of a row by the row's position, normed first or not. A warp
// takes a head; the blocks of a row share its heads.
#include "turn.cuh"
#include "turn_fours.cuh"

#define WARPS 4
#define MANY_ROWS 64
#define BOUNDS 32 * WARPS, 8 /* blocks a multiprocessor: many rows take as many */

// One input of `heads` heads, and where its rows go.
template <class Y>
struct Part {
    const float *x, *w;  // w null: heads are not normed first
    Window window;
    int heads;
    Y to;
};

// Rows one after another.
struct Rows {
    float *y;
    int width;
    __device__ __forceinline__ float *row(i64 r) const { return y + r * width; }
};

static __device__ __forceinline__ bool lie_in_fours(const Rows &to) { return by_four(to.width) && aligned(to.y); }
static __device__ __forceinline__ bool lie_in_fours(const Place &to) { return to.by_four() && aligned(to.table); }

// Whether a part's heads are turned four values at a time.
template <class Y>
static __device__ __forceinline__ bool in_fours(const Part<Y> &part, const Turn &turn) {
    bool whole = turn.kind != PAIR_NEIGHBOURS && turn.offset == 0 && turn.rot == turn.head_dim;
    bool dim = turn.head_dim == 64 || turn.head_dim == 128 || turn.head_dim == 256;
    bool lies = part.window.by_four(part.x) && part.window.width % turn.head_dim == 0 && lie_in_fours(part.to);
    return whole && dim && lies && aligned(part.w) && aligned(turn.cos) && aligned(turn.sin);
}

template <class T>
static __device__ __forceinline__ void rotate_fours(const float *x, const float *w, const Turn &turn, Norm norm, i64 angle, T *y) {
    const float *cos = turn.cos + angle, *sin = turn.sin + angle;
    float offset = norm.plus_one ? 1.0f : 0.0f;
    if (!y) return;
    if (turn.head_dim == 64) turn_fours<64>(x, w, norm.eps, offset, cos, sin, y);
    else if (turn.head_dim == 128) turn_fours<128>(x, w, norm.eps, offset, cos, sin, y);
    else turn_fours<256>(x, w, norm.eps, offset, cos, sin, y);
}

template <class At, class T>
static __device__ __forceinline__ void rotate(At at, const float *w, const Turn &turn, Norm norm, i64 angle, T *y) {
    Head<32, 1, At> head(at, w, turn, norm);
    head.load(angle);
    head.give(y, angle);
}

template <class Y>
static __device__ __forceinline__ void rotate_head(const Part<Y> &part, const Turn &turn, Norm norm, int head,
                                                   i64 angle) {
    i64 row = blockIdx.x;
    auto *y = part.to.row(row);
    if (y) y += head * turn.head_dim;
    int first = head * turn.head_dim;
    if (in_fours(part, turn)) return rotate_fours(part.x + part.window.at(row, first), part.w, turn, norm, angle, y);
    if (part.window.width % turn.head_dim == 0) {
        const float *x = part.x + part.window.at(row, first);
        rotate([x](int i) { return x[i]; }, part.w, turn, norm, angle, y);
    } else {
        rotate([&](int i) { return part.x[part.window.at(row, first + i)]; }, part.w, turn, norm, angle, y);
    }
}

// Of few rows: the blocks of many would all ask for the same lines, and wait for each other.
static __device__ __forceinline__ void prefetch(const float *w, int count) {
    int i = 32 * threadIdx.x;
    if ((int)gridDim.x < MANY_ROWS && w && i < count) asm volatile("prefetch.global.L2 [%0];" ::"l"(w + i));
}

template <class Y>
static __device__ __forceinline__ void rope_one(const Part<Y> &part, const Turn &turn, Norm norm) {
    prefetch(part.w, turn.head_dim);
    before_next();
    after_previous();
    i64 angle = angle_of(turn);
    for (int h = blockIdx.y * WARPS + threadIdx.x / 32; h < part.heads; h += gridDim.y * WARPS)
        rotate_head(part, turn, norm, h, angle);
}

template <class Y>
static __device__ __forceinline__ void rope_two(const Part<Rows> &part0, const Part<Y> &part1,
                                                const Turn &turn, Norm norm) {
    prefetch(part0.w, turn.head_dim);
    prefetch(part1.w, turn.head_dim);
    before_next();
    after_previous();
    i64 angle = angle_of(turn);
    int heads = part0.heads + part1.heads;
    for (int h = blockIdx.y * WARPS + threadIdx.x / 32; h < heads; h += gridDim.y * WARPS) {
        if (h < part0.heads) rotate_head(part0, turn, norm, h, angle);
        else rotate_head(part1, turn, norm, h - part0.heads, angle);
    }
}

// --- entries: by the number of inputs, normed or not, of a part or not, and where the last one goes --

#define WHERE const int *position, const float *cos, const float *sin
#define TABLE cache_t *table, const int *slot
#define ONE int rows, int heads, int head_dim, int rot, int kind
#define TWO int rows, int heads0, int heads1, int head_dim, int rot, int kind
#define NORM , float eps, int plus_one
#define PART , WINDOW(x), int offset
#define PARTS , WINDOW(x0), WINDOW(x1), int offset
#define COLUMNS , int pitch, int column

#define X const float *x
#define XW const float *x, const float *w
#define XX const float *x0, const float *x1
#define XXWW const float *x0, const float *x1, const float *w0, const float *w1

#define TURN(from) Turn{position, cos, sin, head_dim, rot, kind, from}
#define PLAIN Norm{0.0f, 0}
#define NORMED Norm{eps, plus_one}
#define WIDTH (heads * head_dim)
#define WIDTH0 (heads0 * head_dim)
#define WIDTH1 (heads1 * head_dim)

#define PLACED(stem, ins, sizes, w, window, turn, norm)                                                  \
    BS_KERNEL(BOUNDS) stem(ins, WHERE, float *y, sizes) {                                            \
        rope_one(Part<Rows>{x, w, window, heads, Rows{y, WIDTH}}, turn, norm);                           \
    }                                                                                                    \
    BS_KERNEL(BOUNDS) stem##_rows(ins, WHERE, TABLE, sizes) {                                        \
        rope_one(Part<Place>{x, w, window, heads, Place{table, slot, WIDTH, 0}}, turn, norm);            \
    }                                                                                                    \
    BS_KERNEL(BOUNDS) stem##_cols(ins, WHERE, TABLE, sizes COLUMNS) {                                \
        rope_one(Part<Place>{x, w, window, heads, Place{table, slot, pitch, column}}, turn, norm);       \
    }

PLACED(rope, X, ONE, nullptr, dense(WIDTH), TURN(0), PLAIN)
PLACED(rope_n, XW, ONE NORM, w, dense(WIDTH), TURN(0), NORMED)
PLACED(rope_p, X, ONE PART, nullptr, WINDOW_OF(x), TURN(offset), PLAIN)
PLACED(rope_n_p, XW, ONE NORM PART, w, WINDOW_OF(x), TURN(offset), NORMED)

#define PLACED2(stem, ins, sizes, w0, w1, window0, window1, turn, norm)                                  \
    BS_KERNEL(BOUNDS) stem(ins, WHERE, float *y0, float *y1, sizes) {                                \
        rope_two(Part<Rows>{x0, w0, window0, heads0, Rows{y0, WIDTH0}},                                  \
                 Part<Rows>{x1, w1, window1, heads1, Rows{y1, WIDTH1}}, turn, norm);                     \
    }                                                                                                    \
    BS_KERNEL(BOUNDS) stem##_rows(ins, WHERE, float *y0, TABLE, sizes) {                             \
        rope_two(Part<Rows>{x0, w0, window0, heads0, Rows{y0, WIDTH0}},                                  \
                 Part<Place>{x1, w1, window1, heads1, Place{table, slot, WIDTH1, 0}}, turn, norm);       \
    }                                                                                                    \
    BS_KERNEL(BOUNDS) stem##_cols(ins, WHERE, float *y0, TABLE, sizes COLUMNS) {                     \
        rope_two(Part<Rows>{x0, w0, window0, heads0, Rows{y0, WIDTH0}},                                  \
                 Part<Place>{x1, w1, window1, heads1, Place{table, slot, pitch, column}}, turn, norm);   \
    }

PLACED2(rope_parts, XX, TWO, nullptr, nullptr, dense(WIDTH0), dense(WIDTH1), TURN(0), PLAIN)
PLACED2(rope_parts_n, XXWW, TWO NORM, w0, w1, dense(WIDTH0), dense(WIDTH1), TURN(0), NORMED)
PLACED2(rope_parts_p, XX, TWO PARTS, nullptr, nullptr, WINDOW_OF(x0), WINDOW_OF(x1), TURN(offset), PLAIN)
PLACED2(rope_parts_n_p, XXWW, TWO NORM PARTS, w0, w1, WINDOW_OF(x0), WINDOW_OF(x1), TURN(offset), NORMED)
