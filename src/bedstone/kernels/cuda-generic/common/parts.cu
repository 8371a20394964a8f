// take_part, silu_p and its like, concat, quantize_p: windows of rows; a block is a row.
#include "act.cuh"
#include "part.cuh"

#define THREADS 256

// `width` values of a part, changed by f, to y.
template <class Y, class F>
static __device__ __forceinline__ void move_part(const float *x, Window window, Y *y, int width, F f) {
    before_next();
    after_previous();
    i64 start = (i64)blockIdx.x * width;
    in_packs(by_four(width) && window.by_four(x), [&](auto n) {
        constexpr int N = decltype(n)::count;
        along<N, THREADS>(width, [&](int i) {
            store(y + start + i, each(load<N>(x + window.at(blockIdx.x, i)), f));
        });
    });
}

#define PART(entry, type, value)                                                        \
    BS_KERNEL(THREADS) entry(const float *x, type *y, int rows, int width, WINDOW(x)) { \
        move_part(x, WINDOW_OF(x), y, width, [](float v) { return value; });            \
    }

PART(take_part, float, v)
PART(quantize_p, code_t, v)
PART(silu_p, float, silu(v))
PART(sigmoid_p, float, sigmoid(v))
PART(softplus_p, float, softplus(v))
PART(gelu_tanh_p, float, gelu_tanh(v))

BS_KERNEL(THREADS)
concat(const float *a, const float *b, float *y, int rows, int units, int wa, int wb, WINDOW(a), WINDOW(b)) {
    before_next();
    after_previous();
    Window from_a = WINDOW_OF(a), from_b = WINDOW_OF(b);
    int unit = wa + wb;
    y += (i64)blockIdx.x * units * unit;
    bool fours = by_four(wa, wb) && from_a.by_four(a) && from_b.by_four(b);
    in_packs(fours, [&](auto n) {
        constexpr int N = decltype(n)::count;
        along<N, THREADS>(units * unit, [&](int i) {
            int u = i / unit, j = i % unit;
            store(y + i, j < wa ? load<N>(a + from_a.at(blockIdx.x, u * wa + j))
                                : load<N>(b + from_b.at(blockIdx.x, u * wb + j - wa)));
        });
    });
}
