// Rows of floats that blocks of a launch tell each other, each a share of the values. Who needs a value reads it until
// it is there: memory is zeros before, and a zero is told as -0. All blocks must be resident at once.
#pragma once
#include "telling.cuh"

#define MOST_WIDTH 8192
#define MOST_FF 24576
#define TOLD_VALUES (2 * MOST_WIDTH + MOST_FF)

// Launches have the halves in turn, and each clears the other's. In each what two products of the row's width make,
// and the gated unit's values.
static __device__ __align__(16) float told_values[2][TOLD_VALUES];

static __device__ __forceinline__ void tell(float *to, float value) {
    if (value == 0.0f) value = -0.0f;
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}

static __device__ __forceinline__ float4 ask_four(const float *from) {
    float4 v;
    asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

static __device__ __forceinline__ bool are_told(float4 v) {
    return __float_as_uint(v.x) && __float_as_uint(v.y) && __float_as_uint(v.z) && __float_as_uint(v.w);
}

// Fours of a row from `first` on, `apart` from one to the next, but for those from `end` on: looked for all at
// once, and what is missing again.
template <int N>
static __device__ __forceinline__ void await_fours(float4 (&v)[N], const float *row, int first, int apart, int end) {
    patience waits;
    u32 missing = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (first + i * apart < end) missing |= 1u << i;
#pragma unroll 1
    while (missing) {
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (missing >> i & 1) v[i] = ask_four(row + first + i * apart);
#pragma unroll
        for (int i = 0; i < N; ++i)
            if ((missing >> i & 1) && are_told(v[i])) missing &= ~(1u << i);
        waits.look();
    }
}

// A half, by all `threads` of each block.
static __device__ __forceinline__ void clear_told(float *half, int threads) {
    float4 *to = (float4 *)half;
    for (int i = blockIdx.x * threads + threadIdx.x; i < TOLD_VALUES / 4; i += gridDim.x * threads) to[i] = make_float4(0, 0, 0, 0);
}
