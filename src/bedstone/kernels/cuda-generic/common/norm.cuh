// One row normed unit by unit, by the threads of a block: a unit's root mean square and a weight, or
// its length where there is no weight.
#pragma once
#include "part.cuh"

#define THREADS 256
#define WARP_UNIT 512  // values: a longer unit that is the whole row is the block's, others a warp's
#define HELD 4         // loads of a thread on their way at once

struct Norm {
    const float *w;
    int unit;
    float eps;
    int plus_one;  // the weight is 1 + w

    __device__ __forceinline__ float factor(float squares) const {
        return 1.0f / sqrtf((w ? squares / (float)unit : squares) + eps);
    }
    // A value times its unit's factor and its weight.
    __device__ __forceinline__ float scaled(float x, float by, float weight) const {
        if (!w) return __fmul_rn(x, by);
        return __fmul_rn(__fmul_rn(x, by), plus_one ? __fadd_rn(1.0f, weight) : weight);
    }
};

// The threads that share a unit.
struct Team {
    int index, size;
};

static __device__ __forceinline__ Team whole_block() { return Team{(int)threadIdx.x, THREADS}; }
static __device__ __forceinline__ Team own_warp() { return Team{(int)threadIdx.x % 32, 32}; }

// The sum of all threads, in each; a kernel calls it once for each `WHICH`.
template <int WHICH>
static __device__ __forceinline__ float block_sum(float x) {
    __shared__ float sums[32];
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    int warp = threadIdx.x % 32;
    return warp_sum(warp < THREADS / 32 ? sums[warp] : 0.0f);
}

// Whatever is loaded at a time, a thread's values are four side by side, and its sums go by fours.
static __device__ __forceinline__ float squares(Pack<4> v, float sum) {
#pragma unroll
    for (int i = 0; i < 4; i++) sum = fmaf(v.at[i], v.at[i], sum);
    return sum;
}

// Four values, those from `count` on zero; `read(i)` gives N.
template <int N, class Read>
static __device__ __forceinline__ Pack<4> read_four(int i, int count, Read read) {
    if constexpr (N == 4) {
        return read(i);
    } else {
        Pack<4> v = {};
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (i + j < count) v.at[j] = read(i + j).at[0];
        return v;
    }
}

// Four values, but those from `count` on; `give(i, values)` takes N.
template <int N, class Give>
static __device__ __forceinline__ void give_four(int i, int count, Pack<4> v, Give give) {
    if constexpr (N == 4) {
        give(i, v);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (i + j < count) give(i + j, Pack<1>{{v.at[j]}});
    }
}

static __device__ __forceinline__ int in_fours(int count) { return (count + 3) / 4 * 4; }

// Weights on their way to shared memory while the launch before this one still runs.
template <int N>
static __device__ __forceinline__ float *fetch_weights(float *to, const float *w, int count) {
    if (w) along<N, THREADS>(count, [&](int i) { fetch<N>(to + i, w + i); });
    return to + in_fours(count);
}

// The values of a row laid into shared memory; the sum of the squares of the thread's own. `keep(i,
// values)` is told of them once they are read.
template <int N, class Read, class Keep>
static __device__ __forceinline__ float lay_row(float *row, int width, Read read, Keep keep) {
    float sum = 0.0f;
    for (int from = 4 * threadIdx.x; from < width; from += HELD * 4 * THREADS) {
        Pack<4> held[HELD];
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            int i = from + j * 4 * THREADS;
            if (i < width) held[j] = read_four<N>(i, width, read);
        }
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            int i = from + j * 4 * THREADS;
            if (i >= width) continue;
            store(row + i, held[j]);
            give_four<N>(i, width, held[j], keep);
            sum = squares(held[j], sum);
        }
    }
    return sum;
}

// Values [start, start + unit) of a laid row.
template <int N, class Give>
static __device__ __forceinline__ void give_unit(const float *row, const float *weights, const Norm &norm,
                                                 float by, int start, Team team, Give give) {
    for (int i = N * team.index; i < norm.unit; i += N * team.size) {
        Pack<N> weight = load<N>(weights + i);
        give(start + i, each(load<N>(row + start + i), weight,
                             [&](float x, float w) { return norm.scaled(x, by, w); }));
    }
}

template <int N>
static __device__ __forceinline__ float unit_squares(const float *unit, int width) {
    float sum = 0.0f;
    for (int i = 4 * own_warp().index; i < width; i += 4 * 32)
        sum = squares(read_four<N>(i, width, [&](int at) { return load<N>(unit + at); }), sum);
    return warp_sum(sum);
}

// The norm of a row that lies in shared memory, as do its weights; `sum` is lay_row's.
template <int N, class Give>
static __device__ __forceinline__ void norm_laid(const float *row, const float *weights, const Norm &norm,
                                                 int width, float sum, Give give) {
    fetched();
    float total = block_sum<0>(sum);
    if (norm.unit == width && width > WARP_UNIT) {
        give_unit<N>(row, weights, norm, norm.factor(total), 0, whole_block(), give);
        return;
    }
    for (int start = threadIdx.x / 32 * norm.unit; start < width; start += THREADS / 32 * norm.unit) {
        float by = norm.factor(unit_squares<N>(row + start, norm.unit));
        give_unit<N>(row, weights, norm, by, start, own_warp(), give);
    }
}

// `read(i)` gives the values of a row, `keep(i, values)` takes them as they are and `give` their norms.
template <int N, class Read, class Keep, class Give>
static __device__ __forceinline__ void norm_row(const Norm &norm, int width, Read read, Keep keep, Give give) {
    extern __shared__ float4 memory[];
    float *weights = (float *)memory, *row = fetch_weights<N>(weights, norm.w, norm.unit);
    before_next();
    after_previous();
    norm_laid<N>(row, weights, norm, width, lay_row<N>(row, width, read, keep), give);
}

template <int N, class Read, class Give>
static __device__ __forceinline__ void norm_row(const Norm &norm, int width, Read read, Give give) {
    norm_row<N>(norm, width, read, [](int, Pack<N>) {}, give);
}
