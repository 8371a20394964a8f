// What one warp makes of rows of weights and a row of float activations, in one order of summing, so that
// every entry of a mixture makes the same bits of a matrix.
//
// That order hangs on the format and k alone: a row's units are dealt to `lanes_of` them; a lane's own are
// summed in order, then each 32 lanes, then those sums one after another. Here a warp stands for all of
// them: a lane keeps a sum for each 32.
//
// A source says how many WARPS its blocks have, before it includes this.
#pragma once
#include "streamed.cuh"

static __device__ __forceinline__ bool lies_on_16(const void *p) { return ((u64)p & 15) == 0; }

// The activations of a unit, and their sum.
template <class F, bool ALIGNED>
static __device__ __forceinline__ float load_unit(const float *x, int u, float (&out)[F::UNIT]) {
    float all = 0.0f;
#pragma unroll
    for (int p = 0; p < F::UNIT / 4; p++) {
        const float *from = x + F::at(u, p);
        if constexpr (ALIGNED) {
            float4 four = *(const float4 *)from;
            out[4 * p] = four.x, out[4 * p + 1] = four.y, out[4 * p + 2] = four.z, out[4 * p + 3] = four.w;
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) out[4 * p + i] = from[i];
        }
        all += (out[4 * p] + out[4 * p + 1]) + (out[4 * p + 2] + out[4 * p + 3]);
    }
    return all;
}

// A unit of a row that is not whole units, value by value.
template <class F>
static __device__ __forceinline__ float dot_edge(const u8 *w, const float *x, int u, int k) {
    float sum = 0.0f;
    for (int i = F::UNIT * u; i < k && i < F::UNIT * (u + 1); i++) sum = fmaf(F::value(w, i), x[i], sum);
    return sum;
}

// `total` and the sums of all lanes of each of V values, one after another.
template <int V>
static __device__ __forceinline__ float add_lanes(float total, float (&v)[V]) {
    int lane = threadIdx.x % 32, step = 16;
#pragma unroll
    for (int half = V / 2; half; half /= 2, step /= 2) {
        bool high = lane & step;
#pragma unroll
        for (int i = 0; i < half; i++) {
            float other = __shfl_xor_sync(BS_FULL, high ? v[i] : v[i + half], step);
            v[i] = (high ? v[i + half] : v[i]) + other;
        }
    }
#pragma unroll
    for (; step; step /= 2) v[0] += __shfl_xor_sync(BS_FULL, v[0], step);
#pragma unroll
    for (int i = 0; i < V; i++) total += __shfl_sync(BS_FULL, v[0], i * (32 / V));
    return total;
}

template <int W>
struct Products {
    float at[W];
};

// Values that lie one after another: every unit of V 32s of lanes at once.
template <class F, int W, int V>
static __device__ __forceinline__ Products<W> dot_plain(const Rows<W> &w, const float *x, int units) {
    float sums[W][V] = {};
#pragma unroll 1
    for (int from = threadIdx.x % 32; from < units; from += 32 * V)
#pragma unroll
        for (int v = 0; v < V; v++) {
            // past the end the last unit again, counted as nothing: loads wait for no condition
            int u = from + 32 * v, there = min(u, units - 1);
            float values[F::UNIT], all = load_unit<F, true>(x, there, values);
#pragma unroll
            for (int i = 0; i < W; i++) {
                float dot = F::dot(w.at[i], there, values, all);
                sums[i][v] += u < units ? dot : 0.0f;
            }
        }
    Products<W> made;
#pragma unroll
    for (int i = 0; i < W; i++) made.at[i] = add_lanes<V>(0.0f, sums[i]);
    return made;
}

static __device__ __forceinline__ u8 *ring_of_warp() {
    __shared__ __align__(16) u8 rings[WARPS][RING_ROWS * PITCH];
    return rings[threadIdx.x / 32];
}

// Blocks, a step of the stream after another.
template <class F, int W>
static __device__ __forceinline__ Products<W> dot_blocks(const Rows<W> &w, const float *x, int units) {
    typedef Stream<F, W> S;
    S stream(w, ring_of_warp(), units);
    Products<W> made = {};
    float sums[W][S::V] = {};
    Step ahead, step;
    __syncwarp();
#pragma unroll 1
    for (int i = 1; i < S::SLOTS; i++, stream.next(ahead)) stream.fetch(ahead);
#pragma unroll 1
    while (!stream.over(step)) {
        stream.fetch(ahead);
        stream.next(ahead);
        S::arrive();
#pragma unroll
        for (int v = 0; v < S::V; v++) {
            int u = step.first + 32 * v + threadIdx.x % 32;
            if (u >= units) break;
            float values[F::UNIT], all = load_unit<F, true>(x, u, values);
#pragma unroll
            for (int i = 0; i < W; i++) sums[i][v] += F::dot(stream.row(step, i), u, values, all);
        }
        __syncwarp();
        if (!stream.next(step)) continue;
#pragma unroll
        for (int i = 0; i < W; i++) {
            made.at[i] = add_lanes<S::V>(made.at[i], sums[i]);
#pragma unroll
            for (int v = 0; v < S::V; v++) sums[i][v] = 0.0f;
        }
    }
    return made;
}

// Rows of any width, activations that lie anywhere.
template <class F>
static __device__ __noinline__ float dot_any(const u8 *w, const float *x, int k) {
    int units = (k + F::UNIT - 1) / F::UNIT, most = lanes_of(units) / 32;
    float total = 0.0f;
    for (int v = 0; v < most; v++) {
        float sum = 0.0f;
        for (int u = 32 * v + threadIdx.x % 32; u < units; u += 32 * most) {
            float values[F::UNIT];
            if (k % F::UNIT) sum += dot_edge<F>(w, x, u, k);
            else sum += F::dot(w, u, values, load_unit<F, false>(x, u, values));
        }
        sum = warp_sum(sum);
        total = v ? total + sum : sum;
    }
    return total;
}

// The products of W rows of weights with one row of activations, in every lane. Measured faster where it
// is not inlined.
template <class F, int W>
static __device__ __noinline__ Products<W> dot_rows(Rows<W> w, const float *x, int k) {
    if (k % F::UNIT || !lies_on_16(x)) {
        Products<W> made;
        for (int i = 0; i < W; i++) made.at[i] = dot_any<F>(w.at[i], x, k);
        return made;
    }
    int units = k / F::UNIT;
    if constexpr (F::BLOCK > 1) {
        return dot_blocks<F, W>(w, x, units);
    } else {
        switch (lanes_of(units)) {
        case 32: return dot_plain<F, W, 1>(w, x, units);
        case 64: return dot_plain<F, W, 2>(w, x, units);
        case 128: return dot_plain<F, W, 4>(w, x, units);
        default: return dot_plain<F, W, 8>(w, x, units);
        }
    }
}

static __device__ __forceinline__ void prefetch_line(const u8 *at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Brings a warp's rows of weights into the second-level cache, before what they multiply is there.
template <int W>
static __device__ __forceinline__ void prefetch_rows(const Rows<W> &w, i64 bytes) {
#pragma unroll
    for (int i = 0; i < W; i++)
        for (i64 at = 128 * (threadIdx.x % 32); at < bytes; at += 32 * 128) prefetch_line(w.at[i] + at);
}
