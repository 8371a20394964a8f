// Rows of block formats on their way to a warp's products: a block is read in bytes and words that lie
// anyhow, so rows come to shared memory sixteen bytes at a time, some steps ahead.
#pragma once
#include "weights.cuh"

#define RING_ROWS 8  // that a warp has on their way or at hand
#define PITCH 576    // bytes from one to the next: the most of a step, and where among 16 they begin

// W rows of weights, and what is made of each.
template <int W>
struct Rows {
    const u8 *at[W];
};

// Of the first `bytes` of sixteen.
static __device__ __forceinline__ void copy_16(u8 *to, const u8 *from, int bytes) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

template <class F, int W>
struct Stream {
    static constexpr int AHEAD = RING_ROWS / W - 1, V = F::UNIT > 8 ? 1 : 2;  // 32s of units of a step
    const Rows<W> &w;
    u8 *ring;
    int units, most, rounds, steps;

    // Units `most` 32s apart are one lane's, and go one after another.
    __device__ Stream(const Rows<W> &rows, u8 *memory, int units_of_row, int lanes)
        : w(rows), ring(memory), units(units_of_row), most(lanes / 32) {
        rounds = (units + lanes - 1) / lanes;
        steps = rounds * ((most + V - 1) / V);
    }

    __device__ __forceinline__ int first_unit(int step) const {
        return 32 * (step / rounds * V + step % rounds * most);
    }
    __device__ __forceinline__ u8 *slot(int step, int row) const {
        return ring + (step % (AHEAD + 1) * W + row) * PITCH;
    }

    __device__ __forceinline__ void fetch(int step) const {
        int first = step < steps ? first_unit(step) : units, last = min(first + 32 * V, units);
        i64 begin = F::bytes(first * F::UNIT);
        int count = first < last ? (int)(F::bytes(last * F::UNIT) - begin) : 0;
#pragma unroll
        for (int i = 0; i < W; i++) {
            const u8 *from = w.at[i] + begin;
            int skew = (int)((u64)from & 15);
            for (int at = 16 * (threadIdx.x % 32); count && at < skew + count; at += 16 * 32)
                copy_16(slot(step, i) + at, from - skew + at, min(16, skew + count - at));
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    // All steps but the last AHEAD that were asked for have come.
    static __device__ __forceinline__ void arrive() {
        asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD) : "memory");
        __syncwarp();
    }

    // As if the whole row lay in shared memory: where it would begin.
    __device__ __forceinline__ const u8 *row(int step, int i) const {
        i64 begin = F::bytes(first_unit(step) * F::UNIT);
        return slot(step, i) + ((u64)(w.at[i] + begin) & 15) - begin;
    }
};
