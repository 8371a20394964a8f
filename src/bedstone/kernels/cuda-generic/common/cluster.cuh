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
static __device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
static __device__ __forceinline__ void cluster_sync() {
    cluster_arrive();
    cluster_wait();
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
static __device__ __forceinline__ void cluster_wait() { __syncthreads(); }
static __device__ __forceinline__ void cluster_sync() { __syncthreads(); }
template <class T>
static __device__ __forceinline__ T *of_block(T *p, int) {
    return p;
}
#endif
