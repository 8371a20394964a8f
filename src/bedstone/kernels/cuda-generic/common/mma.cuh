// The matrix units' product of 16 rows by 8 columns, 16 deep: bfloat16 in, float32 sums.
//
// With g = lane / 4 and t = lane % 4 a thread holds of A rows g and g + 8, of B column g, of the sums
// rows g and g + 8, columns 2t and 2t + 1.
#pragma once
#include "abi.cuh"

// Adds to four sums. a[0], a[2]: row g, depths 2t, 2t + 1 and 2t + 8, 2t + 9; a[1], a[3]: row g + 8. b0, b1: those depths.
static __device__ __forceinline__ void mma_16x8x16(float *sum, const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 2 to the x, to about two units in the last place.
static __device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
