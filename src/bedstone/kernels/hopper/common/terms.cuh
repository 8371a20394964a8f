// A row of activations as the matrix units take it: each value is the sum of three bfloat16, which have all its 24
// bits. They are three columns of the operand whose rows are weights; the other five are zeros.
#pragma once
#include "abi.cuh"

#define TERMS 3
#define STEP 32                     // values of two instructions: a thread's are sixteen bytes side by side
#define STEP_BYTES (TERMS * 2 * STEP)

// Terms in shared memory. Of a step thread (g, t) has of term g values 2t, 2t + 1, 2t + 8, 2t + 9, and those
// sixteen behind.
struct term_row {
    u8 *memory;

    static __device__ __forceinline__ float upper(float x) { return __uint_as_float(__float_as_uint(x) & 0xffff0000u); }
    static __device__ __forceinline__ u32 uppers(float a, float b) {
        return __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x7632);
    }
    // Two values, `at` being even: what a term leaves is exact.
    __device__ __forceinline__ void put_two(int at, float a, float b) const {
        u32 *to = (u32 *)(memory + at / STEP * STEP_BYTES + at % 8 / 2 * 16 + at % STEP / 8 * 4);
        to[0] = uppers(a, b);
        a = __fsub_rn(a, upper(a)), b = __fsub_rn(b, upper(b));
        to[STEP / 2] = uppers(a, b);
        to[STEP] = pack_bf16(__fsub_rn(a, upper(a)), __fsub_rn(b, upper(b)));
    }
    __device__ __forceinline__ void put_four(int at, float4 v) const {
        put_two(at, v.x, v.y);
        put_two(at + 2, v.z, v.w);
    }
};
