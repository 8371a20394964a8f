// Bulk copies of rows of weights into shared memory, and the barriers that tell of their arrival.
#pragma once
#include "abi.cuh"

static __device__ __forceinline__ u32 shared_address(const void *p) {
    return (u32)__cvta_generic_to_shared(p);
}

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void barrier_init(u64 *barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

static __device__ __forceinline__ void arrive_at(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(u64 *barrier) { arrive_at(shared_address(barrier)); }

static __device__ __forceinline__ void barrier_expect(u64 *barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

// A barrier by its address: one that is made anew for each tile costs more than a register.
static __device__ __forceinline__ void wait_at(u32 barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

static __device__ __forceinline__ void barrier_wait(u64 *barrier, u32 parity) { wait_at(shared_address(barrier), parity); }

// Weights pass through the second-level cache once a step: they make way for what stays there, the code of
// kernels, activations and page tables.
static __device__ __forceinline__ u64 passing_through() {
    u64 policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Both ends on 16 bytes, and whole multiples of them.
static __device__ __forceinline__ void bulk_copy(void *to, const void *from, u32 bytes, u64 *barrier, u64 policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
                 : "memory");
}

// Both whole multiples of 16.
static __device__ __forceinline__ void bulk_prefetch(const void *from, u32 bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}

// Where `from` lies among 16 bytes; its copy lies so too.
static __device__ __forceinline__ u32 skew(const void *from) { return (u32)(u64)from & 15; }

// Bytes that a copy of [from, from + bytes) moves in bulk: whole sixteens around it, of which the last
// may reach past `end`, where the matrix ends; what lies there then is copied byte by byte.
static __device__ __forceinline__ u32 bulk_bytes(const u8 *from, u32 bytes, const u8 *end) {
    u64 first = (u64)from & ~15ull, last = ((u64)from + bytes + 15) & ~15ull;
    return (u32)((last <= (u64)end ? last : (u64)end & ~15ull) - first);
}

static __device__ __forceinline__ void copy_rest(u8 *to, const u8 *from, u32 bytes, const u8 *end) {
    u32 moved = bulk_bytes(from, bytes, end), from_skew = skew(from);
#pragma unroll 1
    for (u32 i = moved; i < from_skew + bytes; ++i) to[i] = (from - from_skew)[i];
}
#endif
