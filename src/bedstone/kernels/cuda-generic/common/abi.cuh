// What every CUDA kernel of the library shares: how it is declared, ordered after the one before it,
// and what the values of a cache are. Compiled by NVRTC without headers of a toolkit.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// A kernel of the manifest: C linkage, the most threads that its launches have, and if need be how many
// of its blocks a multiprocessor is to hold.
#define BS_KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)

// Entries take seconds to compile: BS_ONLY names those, or the family, that a module holds. Without it all
// that its source has are there. Each source numbers its own, `BS_ID_name`.
#ifdef BS_ONLY
#define BS_PASTE_(a, b) a##b
#define BS_PASTE(a, b) BS_PASTE_(a, b)
#define BS_WANTED(id) (BS_PASTE(BS_ID_, BS_ONLY) == id)
#else
#define BS_WANTED(id) 1
#endif

#define BS_FULL 0xffffffffu

// bfloat16 and binary16 as bits: conversions are the hardware's, to nearest even.
struct bf16 {
    u16 bits;
};
struct f16 {
    u16 bits;
};

static __device__ __forceinline__ float to_f32(float x) { return x; }
static __device__ __forceinline__ float to_f32(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
static __device__ __forceinline__ float to_f32(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

template <class T>
static __device__ __forceinline__ T from_f32(float x);
template <>
__device__ __forceinline__ float from_f32<float>(float x) {
    return x;
}
template <>
__device__ __forceinline__ bf16 from_f32<bf16>(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}

// Two floats as two bfloat16 in one word, the first in the low half.
static __device__ __forceinline__ u32 pack_bf16(float low, float high) {
    u32 y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

// The values of a paged table: what `BS_CACHE` says. Recurrent states are float whatever it is.
#ifndef BS_CACHE
#define BS_CACHE float
#endif
typedef BS_CACHE cache_t;

// The coded form of an activation, which the matrix units read.
typedef bf16 code_t;

// Launches of a step overlap: a kernel may start while the one before it still runs. Nothing that
// a step computes is read, and nothing at all is written, before `after_previous`; constants may be.
static __device__ __forceinline__ void after_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next launch's blocks start where there is room; called once constants are on their way.
static __device__ __forceinline__ void before_next() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

static __device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step; step >>= 1) x += __shfl_xor_sync(BS_FULL, x, step);
    return x;
}

static __device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int step = 16; step; step >>= 1) x = fmaxf(x, __shfl_xor_sync(BS_FULL, x, step));
    return x;
}
