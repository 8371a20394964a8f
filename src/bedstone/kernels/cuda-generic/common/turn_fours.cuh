// Whole heads of 64, 128 or 256 values turned four values at a time: value i pairs with i + half, which is
// the same thread's next four or those of the lane half as many lanes on. The bits are those of heads that
// are turned value by value.
#pragma once
#include "part.cuh"

// How the lanes of a warp have a head: those that do, and how many fours each.
template <int DIM>
struct Fours {
    static constexpr int lanes = DIM / 4 < 32 ? DIM / 4 : 32, count = DIM / (4 * lanes);
    static constexpr int half = count == 2 ? lanes : lanes / 2;  // lanes of a head's first half
    static_assert(lanes * count * 4 == DIM && count <= 2, "a head is one or two fours a lane");
};

template <int DIM>
static __device__ __forceinline__ float squares_of(const Pack<4> (&v)[Fours<DIM>::count]) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < Fours<DIM>::count; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) sum = fmaf(v[j].at[i], v[j].at[i], sum);
    return warp_sum(sum);
}

// The head that begins at `x`, normed by its root mean square and `w` unless that is null, into `y`; `cos`
// and `sin` are of its position. All lanes of a warp call it.
template <int DIM, class T>
static __device__ __forceinline__ void turn_fours(const float *x, const float *w, float eps, float offset,
                                                  const float *cos, const float *sin, T *y) {
    constexpr int LANES = Fours<DIM>::lanes, COUNT = Fours<DIM>::count, HALF = Fours<DIM>::half;
    int lane = threadIdx.x % 32, angle = lane % HALF * 4;
    bool mine = lane < LANES;
    Pack<4> v[COUNT] = {}, c = load<4>(cos + angle), s = load<4>(sin + angle);
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        if (mine) v[j] = load<4>(x + 4 * (lane + 32 * j));
    if (w) {
        float by = 1.0f / sqrtf(squares_of<DIM>(v) / (float)DIM + eps);
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            v[j] = each(v[j], load<4>(w + 4 * (lane % LANES + 32 * j)),
                        [&](float a, float b) { return __fmul_rn(__fmul_rn(a, by), __fadd_rn(offset, b)); });
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float own = v[0].at[i], other = COUNT == 2 ? v[COUNT - 1].at[i] : __shfl_xor_sync(BS_FULL, own, HALF);
        bool low = COUNT == 2 || lane < HALF;
        float a = low ? own : other, b = low ? other : own;
        float first = __fsub_rn(__fmul_rn(a, c.at[i]), __fmul_rn(b, s.at[i]));
        float second = __fadd_rn(__fmul_rn(b, c.at[i]), __fmul_rn(a, s.at[i]));
        v[0].at[i] = low ? first : second;
        if (COUNT == 2) v[COUNT - 1].at[i] = second;
    }
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        if (mine) store(y + 4 * (lane + 32 * j), v[j]);
}
