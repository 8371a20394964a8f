// add, mul, silu, gelu_tanh, sigmoid, softplus, scale, softcap, copies, casts: a thread is four values.
#include "act.cuh"
#include "pack.cuh"

#define THREADS 256

// y[i] = f(i) for this thread's values; each of `f(Lanes<N>, i)` gives N of them.
template <class F>
static __device__ __forceinline__ void at_each(float *y, int count, F f) {
    before_next();
    after_previous();
    int first = 4 * (blockIdx.x * THREADS + threadIdx.x);
    if (first + 4 <= count) {
        store(y + first, f(Lanes<4>{}, first));
        return;
    }
    for (int i = first; i < count; i++) store(y + i, f(Lanes<1>{}, i));
}

template <class X, class F>
static __device__ __forceinline__ void map(const X *x, float *y, int count, F f) {
    at_each(y, count, [&](auto n, int i) { return each(load<decltype(n)::count>(x + i), f); });
}

template <class F>
static __device__ __forceinline__ void map(const float *a, const float *b, float *y, int count, F f) {
    at_each(y, count, [&](auto n, int i) {
        constexpr int N = decltype(n)::count;
        return each(load<N>(a + i), load<N>(b + i), f);
    });
}

BS_KERNEL(THREADS) add(const float *a, const float *b, float *y, int count) { map(a, b, y, count, __fadd_rn); }
BS_KERNEL(THREADS) mul(const float *a, const float *b, float *y, int count) { map(a, b, y, count, __fmul_rn); }

#define MAP(entry, type, value)                                           \
    BS_KERNEL(THREADS) entry(const type *x, float *y, int count) {        \
        map(x, y, count, [](float v) { return value; });                  \
    }

MAP(silu, float, silu(v))
MAP(gelu_tanh, float, gelu_tanh(v))
MAP(sigmoid, float, sigmoid(v))
MAP(softplus, float, softplus(v))
MAP(copy_rows, float, v)
MAP(cast_f16_f32, f16, v)
MAP(cast_bf16_f32, bf16, v)

BS_KERNEL(THREADS) scale(const float *x, float *y, int count, float by) {
    map(x, y, count, [by](float v) { return __fmul_rn(v, by); });
}

BS_KERNEL(THREADS) softcap(const float *x, float *y, int count, float cap) {
    map(x, y, count, [cap](float v) { return __fmul_rn(cap, tanhf(__fdiv_rn(v, cap))); });
}
