// Windows into the rows of a wider tensor, read unit by unit; and columns of a table's rows.
#pragma once
#include "pack.cuh"

#define WINDOW(x) int x##_row, int x##_unit, int x##_width
#define WINDOW_OF(x) Window{x##_row, x##_unit, x##_width}

// Value i of row r lies at r * row + i / width * unit + i % width.
struct Window {
    int row, unit, width;

    __device__ __forceinline__ i64 at(i64 r, int i) const {
        return r * row + (i64)(i / width) * unit + i % width;
    }
    __device__ __forceinline__ bool by_four(const float *x) const {
        return ::by_four(row, unit, width) && aligned(x);
    }
};

static __device__ __forceinline__ Window dense(int width) { return Window{width, width, width}; }

// Rows of a table, or columns of them: the row each goes to is `slot`'s, none where that is negative.
struct Place {
    cache_t *table;
    const int *slot;
    int pitch, column;

    __device__ __forceinline__ cache_t *row(i64 r) const {
        i64 to = slot[r];
        return to < 0 ? nullptr : table + to * pitch + column;
    }
    __device__ __forceinline__ bool by_four() const { return ::by_four(pitch, column); }
};

// The threads of a block share a row: f(i) for the first of each N values.
template <int N, int SIZE, class F>
static __device__ __forceinline__ void along(int width, F f) {
    for (int i = N * threadIdx.x; i < width; i += N * SIZE) f(i);
}
