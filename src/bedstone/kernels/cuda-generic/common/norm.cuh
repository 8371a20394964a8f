// One row normed unit by unit, by the threads of a block: a unit's root mean square and a weight, or
// its length where there is no weight.
#pragma once
#include "part.cuh"

// A source says how many THREADS its blocks have, before it includes this.

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

template <int N>
static __device__ __forceinline__ float squares(Pack<N> v, float sum) {
#pragma unroll
    for (int i = 0; i < N; i++) sum = fmaf(v.at[i], v.at[i], sum);
    return sum;
}

static __device__ __forceinline__ int in_fours(int count) { return (count + 3) / 4 * 4; }

// Weights on their way to shared memory while the launch before this one still runs.
template <int N>
static __device__ __forceinline__ float *fetch_weights(float *to, const float *w, int count) {
    if (w) along<N, THREADS>(count, [&](int i) { fetch<N>(to + i, w + i); });
    return to + in_fours(count);
}

// The values of a row laid into shared memory; the sum of the squares of the thread's own.
template <int N, class Read>
static __device__ __forceinline__ float lay_row(float *row, int width, Read read) {
    float sum = 0.0f;
    along<N, THREADS>(width, [&](int i) {
        Pack<N> v = read(i);
        store(row + i, v);
        sum = squares(v, sum);
    });
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
    for (int i = N * own_warp().index; i < width; i += N * 32) sum = squares(load<N>(unit + i), sum);
    return warp_sum(sum);
}

// The norm of a row that lies in shared memory, as do its weights; `sum` is lay_row's.
template <int N, class Give>
static __device__ __forceinline__ void norm_laid(const float *row, const float *weights, const Norm &norm,
                                                 int width, float sum, Give give) {
    fetched();
    float total = block_sum<0>(sum);
    if (norm.unit == width) {
        give_unit<N>(row, weights, norm, norm.factor(total), 0, whole_block(), give);
        return;
    }
    for (int start = threadIdx.x / 32 * norm.unit; start < width; start += THREADS / 32 * norm.unit) {
        float by = norm.factor(unit_squares<N>(row + start, norm.unit));
        give_unit<N>(row, weights, norm, by, start, own_warp(), give);
    }
}

// `read(i)` gives the values of a row, `give(i, values)` takes their norms.
template <int N, class Read, class Give>
static __device__ __forceinline__ void norm_row(const Norm &norm, int width, Read read, Give give) {
    extern __shared__ float4 memory[];
    float *weights = (float *)memory, *row = fetch_weights<N>(weights, norm.w, norm.unit);
    before_next();
    after_previous();
    norm_laid<N>(row, weights, norm, width, lay_row<N>(row, width, read), give);
}
