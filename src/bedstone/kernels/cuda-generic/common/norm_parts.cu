// norm of a part or into columns, l2norm, gated_norm, add_norm_pre: a block is a row.
#include "act.cuh"
#include "norm.cuh"

#define SIZES int rows, int width, int unit, float eps, int plus_one
#define COLUMNS int pitch, int column

// --- a part, or into columns ---------------------------------------------------------------------

static __device__ __forceinline__ bool in_fours(const Norm &norm, int width, Window window, const float *x) {
    return by_four(width, norm.unit) && window.by_four(x);
}

BS_KERNEL(THREADS)
norm_p(const float *x, const float *w, float *y, SIZES, WINDOW(x)) {
    Norm norm = {w, unit, eps, plus_one};
    Window window = WINDOW_OF(x);
    i64 start = (i64)blockIdx.x * width;
    in_packs(in_fours(norm, width, window, x), [&](auto n) {
        constexpr int N = decltype(n)::count;
        norm_row<N>(norm, width, [&](int i) { return load<N>(x + window.at(blockIdx.x, i)); },
                    [&](int i, Pack<N> v) { store(y + start + i, v); });
    });
}

static __device__ __forceinline__ void norm_cols_entry(const float *x, Place place, const Norm &norm,
                                                       int width, Window window) {
    in_packs(in_fours(norm, width, window, x) && place.by_four(), [&](auto n) {
        constexpr int N = decltype(n)::count;
        auto read = [&](int i) { return load<N>(x + window.at(blockIdx.x, i)); };
        norm_row<N>(norm, width, read, [&](int i, Pack<N> v) {
            cache_t *y = place.row(blockIdx.x);
            if (y) store(y + i, v);
        });
    });
}

BS_KERNEL(THREADS)
norm_cols(const float *x, const float *w, cache_t *table, const int *slot, SIZES, COLUMNS) {
    norm_cols_entry(x, Place{table, slot, pitch, column}, Norm{w, unit, eps, plus_one}, width, dense(width));
}

BS_KERNEL(THREADS)
norm_p_cols(const float *x, const float *w, cache_t *table, const int *slot, SIZES, WINDOW(x), COLUMNS) {
    norm_cols_entry(x, Place{table, slot, pitch, column}, Norm{w, unit, eps, plus_one}, width, WINDOW_OF(x));
}

BS_KERNEL(THREADS) l2norm(const float *x, float *y, int rows, int width, int unit, float eps) {
    i64 start = (i64)blockIdx.x * width;
    in_packs(by_four(width, unit), [&](auto n) {
        constexpr int N = decltype(n)::count;
        norm_row<N>(Norm{nullptr, unit, eps, 0}, width, [&](int i) { return load<N>(x + start + i); },
                    [&](int i, Pack<N> v) { store(y + start + i, v); });
    });
}

// --- results in any form -------------------------------------------------------------------------

static __device__ __forceinline__ void gated_norm_entry(const float *x, const float *z, Forms out,
                                                        const Norm &norm, int width, Window window) {
    i64 start = (i64)blockIdx.x * width;
    in_packs(in_fours(norm, width, window, z), [&](auto n) {
        constexpr int N = decltype(n)::count;
        auto give = [&](int i, Pack<N> v) {
            Pack<N> gate = load<N>(z + window.at(blockIdx.x, i));
            out.give(start + i, each(v, gate, [](float a, float b) { return __fmul_rn(a, silu(b)); }));
        };
        norm_row<N>(norm, width, [&](int i) { return load<N>(x + start + i); }, give);
    });
}

// Addends of a row: `d` is normed before it is added to `x`. `sum` may be either.
struct Addends {
    const float *x, *d;
    float *sum;
};

template <int N>
static __device__ __forceinline__ void add_norm_pre_row(Addends in, const Norm &pre, const Norm &norm,
                                                        int width, i64 start, Forms out) {
    extern __shared__ float4 memory[];
    float *weights = (float *)memory;
    float *pre_weights = fetch_weights<N>(weights, norm.w, norm.unit);
    float *row = fetch_weights<N>(pre_weights, pre.w, width);
    before_next();
    after_previous();
    auto nobody = [](int, Pack<N>) {};
    float sum = lay_row<N>(row, width, [&](int i) { return load<N>(in.d + start + i); }, nobody);
    fetched();
    float by = pre.factor(block_sum<1>(sum));
    auto read = [&](int i) {
        Pack<N> normed = each(load<N>(row + i), load<N>(pre_weights + i),
                              [&](float x, float w) { return pre.scaled(x, by, w); });
        return each(load<N>(in.x + start + i), normed, __fadd_rn);
    };
    sum = lay_row<N>(row, width, read, [&](int i, Pack<N> v) { store(in.sum + start + i, v); });
    norm_laid<N>(row, weights, norm, width, sum, [&](int i, Pack<N> v) { out.give(start + i, v); });
}

#define FORMS(suffix, outs, ...)                                                                          \
    BS_KERNEL(THREADS)                                                                                    \
    gated_norm##suffix(const float *x, const float *w, const float *z, outs, SIZES, WINDOW(z)) {          \
        gated_norm_entry(x, z, Forms{__VA_ARGS__}, Norm{w, unit, eps, plus_one}, width, WINDOW_OF(z));    \
    }                                                                                                     \
    BS_KERNEL(THREADS)                                                                                    \
    add_norm_pre##suffix(const float *x, const float *d, const float *dw, const float *w, float *sum,     \
                         outs, SIZES, float pre_eps, int pre_plus_one) {                                  \
        in_packs(by_four(width, unit), [&](auto n) {                                                      \
            add_norm_pre_row<decltype(n)::count>({x, d, sum}, Norm{dw, width, pre_eps, pre_plus_one},     \
                                                 Norm{w, unit, eps, plus_one}, width,                     \
                                                 (i64)blockIdx.x * width, Forms{__VA_ARGS__});            \
        });                                                                                               \
    }

#define F float *y
#define Q code_t *yq
#define FQ float *y, code_t *yq
FORMS(, F, y, nullptr)
FORMS(_q, Q, nullptr, yq)
FORMS(_fq, FQ, y, yq)
