// set_rows, set_cols, take_row, add_row: whole rows, or columns of a table's; a block is a row.
#include "part.cuh"

#define THREADS 256

static __device__ __forceinline__ void set_entry(const float *x, Place place, int width) {
    before_next();
    after_previous();
    cache_t *y = place.row(blockIdx.x);
    if (!y) return;
    const float *row = x + (i64)blockIdx.x * width;
    in_packs(by_four(width) && place.by_four(), [&](auto n) {
        constexpr int N = decltype(n)::count;
        along<N, THREADS>(width, [&](int i) { store(y + i, load<N>(row + i)); });
    });
}

BS_KERNEL(THREADS) set_rows(const float *x, const int *slot, cache_t *table, int rows, int width) {
    set_entry(x, Place{table, slot, width, 0}, width);
}

BS_KERNEL(THREADS)
set_cols(const float *x, const int *slot, cache_t *table, int rows, int width, int pitch, int column) {
    set_entry(x, Place{table, slot, pitch, column}, width);
}

// `row` counts from 1.
BS_KERNEL(THREADS) take_row(const float *x, int row, float *y, int width) {
    before_next();
    after_previous();
    const float *from = x + (i64)(row - 1) * width;
    in_packs(by_four(width), [&](auto n) {
        constexpr int N = decltype(n)::count;
        along<N, THREADS>(width, [&](int i) { store(y + i, load<N>(from + i)); });
    });
}

BS_KERNEL(THREADS) add_row(const float *a, const float *b, float *y, int rows, int width) {
    i64 start = (i64)blockIdx.x * width;
    before_next();
    after_previous();
    in_packs(by_four(width), [&](auto n) {
        constexpr int N = decltype(n)::count;
        along<N, THREADS>(width, [&](int i) {
            store(y + start + i, each(load<N>(a + start + i), load<N>(b + i), __fadd_rn));
        });
    });
}
