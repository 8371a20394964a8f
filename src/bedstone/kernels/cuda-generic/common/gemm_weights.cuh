// How a block stages the weight rows of a pass: slots of 16 rows, 64 values of k at a time as bf16.
#pragma once
#include "gemm_batch.cuh"

#define BS_W_BYTES (BS_EXCHANGED * BS_SLOT_BYTES)

static __device__ __forceinline__ u32 in_shared(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// Sixteen bytes, of which the first `bytes` come from memory and the rest are zeros.
static __device__ __forceinline__ void fetch_16(void *to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(in_shared(to)), "l"(from),
                 "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void fetch_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all but the last `LEFT` groups of fetches have arrived.
template <int LEFT>
static __device__ __forceinline__ void fetch_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Where sixteen bytes of a staged row lie: so that eight rows' pieces fall into different banks.
static __device__ __forceinline__ int swizzled(int row, int piece) {
    return row * BS_ROW_BYTES + ((piece ^ (row & 7)) << 4);
}

// Eight values of a row, of which `left` are there, all or none; the others are zeros.
static __device__ __forceinline__ void fetch_values(u8 *to, const bf16 *from, int left) {
    fetch_16(to, left > 0 ? from : from + left - 8, left > 0 ? 16 : 0);
}

// The four rows of a pass of which this thread fetches a piece; null past the share's end.
struct Source {
    const bf16 *row[4];

    template <class J>
    __device__ __forceinline__ void point(const J &job, int unit, int end) {
        int half = (int)threadIdx.x / 128, of_slot = (int)threadIdx.x / 8 % 16;
        const u8 *second = job.part[J::count - 1].w;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int tile = unit + (J::gated ? i : 2 * i + half);
            row[i] = nullptr;
            if (tile >= end) continue;
            Part part = part_of(job, 16, tile);
            const u8 *w = J::gated && half ? second : part.w;
            row[i] = (const bf16 *)w + (i64)least(tile * 16 + of_slot, part.n - 1) * job.k;
        }
    }

    template <class J>
    __device__ __forceinline__ void fetch(u8 *to, const J &job, int step) const {
        int piece = (int)threadIdx.x % 8, k = step * BS_DEPTH + piece * 8;
        to += swizzled((int)threadIdx.x / 8, piece);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (row[i]) fetch_values(to + i * 32 * BS_ROW_BYTES, row[i] + k, job.k - k);
    }
};
