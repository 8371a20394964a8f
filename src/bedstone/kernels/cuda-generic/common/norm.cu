// norm, add_norm, quantize: a block is a row.
#include "norm.cuh"

static __device__ __forceinline__ void norm_entry(const float *x, Forms out, const Norm &norm, int width) {
    i64 start = (i64)blockIdx.x * width;
    auto run = [&](auto n) {
        constexpr int N = decltype(n)::count;
        norm_row<N>(norm, width, [&](int i) { return load<N>(x + start + i); },
                    [&](int i, Pack<N> v) { out.give(start + i, v); });
    };
    in_packs(by_four(width, norm.unit), run);
}

// `sum` may be `x` or `d`.
static __device__ __forceinline__ void add_norm_entry(const float *x, const float *d, float *sum, Forms out,
                                                      const Norm &norm, int width) {
    i64 start = (i64)blockIdx.x * width;
    auto run = [&](auto n) {
        constexpr int N = decltype(n)::count;
        norm_row<N>(norm, width, [&](int i) { return each(load<N>(x + start + i), load<N>(d + start + i), __fadd_rn); },
                    [&](int i, Pack<N> v) { store(sum + start + i, v); },
                    [&](int i, Pack<N> v) { out.give(start + i, v); });
    };
    in_packs(by_four(width, norm.unit), run);
}

#define SIZES int rows, int width, int unit, float eps, int plus_one
#define NORM(name, add_name, outs, ...)                                                      \
    BS_KERNEL(THREADS) name(const float *x, const float *w, outs, SIZES) {                      \
        norm_entry(x, Forms{__VA_ARGS__}, Norm{w, unit, eps, plus_one}, width);                 \
    }                                                                                           \
    BS_KERNEL(THREADS)                                                                          \
    add_name(const float *x, const float *d, const float *w, float *sum, outs, SIZES) {         \
        add_norm_entry(x, d, sum, Forms{__VA_ARGS__}, Norm{w, unit, eps, plus_one}, width);     \
    }

#define F float *y
#define Q code_t *yq
#define FQ float *y, code_t *yq
// `norm` is a function of the mathematics that every CUDA source is compiled with
NORM(norm_f, add_norm, F, y, nullptr)
NORM(norm_q, add_norm_q, Q, nullptr, yq)
NORM(norm_fq, add_norm_fq, FQ, y, yq)

BS_KERNEL(THREADS) quantize(const float *x, code_t *yq, int rows, int width) {
    i64 start = (i64)blockIdx.x * width;
    before_next();
    after_previous();
    in_packs(by_four(width), [&](auto n) {
        constexpr int N = decltype(n)::count;
        along<N, THREADS>(width, [&](int i) { store(yq + start + i, load<N>(x + start + i)); });
    });
}
