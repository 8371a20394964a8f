// Blocks of a cluster, which read each other's shared memory. Below sm_90 a launch has no clusters:
// what they would share is done by the first block, and the others have nothing to do.
#pragma once
#include "abi.cuh"

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ int cluster_rank() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}
static __device__ __forceinline__ int cluster_size() {
    u32 size;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return (int)size;
}
static __device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
// Tells nothing of what was written before.
static __device__ __forceinline__ void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
static __device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
static __device__ __forceinline__ void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}
// A barrier that counts the bytes sent to this block's shared memory. Its beginning is told to the cluster by
// the next arrival, however relaxed.
static __device__ __forceinline__ void inbox_init(u64 *barrier) {
    u32 address = (u32)__cvta_generic_to_shared(barrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ __forceinline__ void inbox_expect(u64 *barrier, u32 bytes) {
    u32 address = (u32)__cvta_generic_to_shared(barrier);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes) : "memory");
}
static __device__ __forceinline__ void inbox_wait(u64 *barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"((u32)__cvta_generic_to_shared(barrier)),
        "r"(parity)
        : "memory");
}
static __device__ __forceinline__ u32 address_of_block(const void *p, int rank) {
    u32 there;
    u32 here = (u32)__cvta_generic_to_shared(p);
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    return there;
}
// Four floats, or two, for what `to` is in block `rank`; its barrier counts them when they are there.
static __device__ __forceinline__ void send_4(void *to, u64 *barrier, int rank, float a, float b, float c, float d) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                     address_of_block(to, rank)),
                 "f"(a), "f"(b), "f"(c), "f"(d), "r"(address_of_block(barrier, rank))
                 : "memory");
}
static __device__ __forceinline__ void send_2(void *to, u64 *barrier, int rank, float a, float b) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
                     address_of_block(to, rank)),
                 "f"(a), "f"(b), "r"(address_of_block(barrier, rank))
                 : "memory");
}
// Where block `rank` has what lies at `p` in the shared memory of this one.
template <class T>
static __device__ __forceinline__ T *of_block(T *p, int rank) {
    u64 there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(rank));
    return (T *)there;
}
#else
static __device__ __forceinline__ int cluster_rank() { return 0; }
static __device__ __forceinline__ int cluster_size() { return 1; }
static __device__ __forceinline__ void cluster_arrive() {}
static __device__ __forceinline__ void cluster_arrive_relaxed() {}
static __device__ __forceinline__ void inbox_init(u64 *) {}
static __device__ __forceinline__ void inbox_expect(u64 *, u32) {}
static __device__ __forceinline__ void inbox_wait(u64 *, u32) {}
static __device__ __forceinline__ void send_4(void *, u64 *, int, float, float, float, float) {}
static __device__ __forceinline__ void send_2(void *, u64 *, int, float, float) {}
static __device__ __forceinline__ void cluster_wait() { __syncthreads(); }
static __device__ __forceinline__ void cluster_sync() { __syncthreads(); }
template <class T>
static __device__ __forceinline__ T *of_block(T *p, int) {
    return p;
}
#endif
