// Copies of 16 bytes into shared memory that arrive behind a thread's back, in groups.
#pragma once
#include "abi.cuh"

static __device__ __forceinline__ void copy_16(u32 to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}
static __device__ __forceinline__ void copies_end() { asm volatile("cp.async.commit_group;"); }
template <int LEFT>
static __device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}
