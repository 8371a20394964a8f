// What a warp makes of slices of rows of weights: by one row of activations that it keeps, by several that
// it reads again, or value by value.
#pragma once
#include "shares.cuh"

// Rounded by itself: a row's bits hang on nothing that is multiplied beside it.
static __device__ __forceinline__ void add(float &sum, float product) { sum = __fadd_rn(sum, product); }

// The activations of one row of them that this thread multiplies, kept.
struct held {
    static constexpr int ROWS = 1, KNOWN = HELD; // rows; numbers of slots that are compiled for
    unit_of_x own[HELD];
    const float *x;
    int units, first, slots, last;

    template <int PARTS, bool GATED>
    __device__ __forceinline__ held(const job<PARTS, GATED> &j, const share<PARTS, GATED> &s, int row)
        : x(j.x + (i64)row * j.k), units(s.units), first(32 * s.from + threadIdx.x % 32), slots(s.to - s.from),
          last(s.units - 1 - 32 * s.from) {
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            if (i < slots) load(own[i], i);
    }
    // Of a unit past the last the last again, which nobody adds up.
    __device__ __forceinline__ void load(unit_of_x &to, int i) const {
        float values[format::UNIT];
        load_values(values, x, min(first + 32 * i, units - 1));
        to.take(values);
    }
    // Only the last slot may end among its lanes.
    __device__ __forceinline__ float at_end(const unit_of_x &of, const u8 *slice, int i) const {
        int u = 32 * i + threadIdx.x % 32;
        float made = of.dot(slice, min(u, last));
        return u <= last ? made : 0.f;
    }
    // A slice's product, its slots all of those kept or N of them: what a thread multiplies waits for nothing
    // in between.
    template <int N>
    __device__ __forceinline__ void multiply(const u8 *slice, float (&sum)[1]) const {
        sum[0] = 0;
#pragma unroll
        for (int i = 0; i < N - 1; ++i) add(sum[0], own[i].dot(slice, 32 * i + threadIdx.x % 32));
        add(sum[0], at_end(own[N - 1], slice, N - 1));
        if constexpr (N == HELD)
            for (int i = HELD; i < slots; ++i) {
                unit_of_x more;
                load(more, i);
                add(sum[0], at_end(more, slice, i));
            }
    }
};

// The same of several rows, read again for each slice: weights are read once for all of them.
struct passing {
    static constexpr int ROWS = 8, KNOWN = 1;
    const float *x;
    int units, first, slots, k, rows;

    template <int PARTS, bool GATED>
    __device__ __forceinline__ passing(const job<PARTS, GATED> &j, const share<PARTS, GATED> &s, int row)
        : x(j.x + (i64)row * j.k), units(s.units), first(32 * s.from + threadIdx.x % 32), slots(s.to - s.from), k(j.k),
          rows(min(ROWS, j.rows - row)) {}

    template <int>
    __device__ __forceinline__ void multiply(const u8 *slice, float (&sum)[ROWS]) const {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sum[r] = 0;
        int last = units - 1 - first + threadIdx.x % 32;
#pragma unroll 2
        for (int i = 0; i < slots; ++i) {
            int u = 32 * i + threadIdx.x % 32;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                if (r >= rows) break;
                float values[format::UNIT];
                unit_of_x x_of;
                load_values(values, x + (i64)r * k, min(first + 32 * i, units - 1));
                x_of.take(values);
                float made = x_of.dot(slice, min(u, last));
                add(sum[r], u <= last ? made : 0.f);
            }
        }
    }
};

// Rows that are no whole units, or activations that do not lie on 16 bytes: value by value.
struct uneven {
    static constexpr int ROWS = 1, KNOWN = 1;
    const float *x;
    int units, first, slots, k;

    template <int PARTS, bool GATED>
    __device__ __forceinline__ uneven(const job<PARTS, GATED> &j, const share<PARTS, GATED> &s, int row)
        : x(j.x + (i64)row * j.k), units(s.units), first(32 * s.from + threadIdx.x % 32), slots(s.to - s.from), k(j.k) {}

    template <int>
    __device__ void multiply(const u8 *slice, float (&sum)[1]) const {
        sum[0] = 0;
        for (int i = 0; i < slots; ++i) {
            int u = first + 32 * i;
            float values[format::UNIT];
            load_each(values, x, u, k);
            if constexpr (format::BLOCK == 1) {
                if (u < units) add(sum[0], edge_dot(slice - format::bytes((first - threadIdx.x % 32) * format::UNIT), u, values, k));
            } else {
                unit_of_x of;
                of.take(values);
                if (u < units) add(sum[0], of.dot(slice, 32 * i + threadIdx.x % 32));
            }
        }
    }
};

// The sums of V values over a warp, all at once: the one of value `lane / (32 / V)` in every lane.
template <int V>
static __device__ __forceinline__ float warp_sums(float (&v)[V]) {
    int step = 16;
#pragma unroll
    for (int half = V / 2; half; half /= 2, step /= 2) {
        bool high = threadIdx.x & step;
#pragma unroll
        for (int i = 0; i < half; ++i)
            v[i] = (high ? v[i + half] : v[i]) + __shfl_xor_sync(BS_FULL, high ? v[i] : v[i + half], step);
    }
#pragma unroll
    for (; step; step /= 2) v[0] += __shfl_xor_sync(BS_FULL, v[0], step);
    return v[0];
}
