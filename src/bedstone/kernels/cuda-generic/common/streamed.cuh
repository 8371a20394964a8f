// Rows of block formats on their way to a warp's products: a block is read in bytes and words that lie
// anyhow, so rows come to shared memory sixteen bytes at a time, some steps ahead.
#pragma once
#include "weights.cuh"

#define RING_ROWS 8  // that a warp has on their way or at hand
#define PITCH 592    // bytes from one to the next: the most of a step, and where among 16 they begin

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

// A step of a stream: its first unit, and where in the ring it lies.
struct Step {
    int first = 0, group = 0, slot = 0;
};

template <class F, int W>
struct Stream {
    static constexpr int SLOTS = RING_ROWS / W, V = F::UNIT > 8 ? 1 : 2;  // V 32s of units are a step
    const Rows<W> &w;
    u8 *ring;
    int units, lanes;

    __device__ Stream(const Rows<W> &rows, u8 *memory, int units_of_row)
        : w(rows), ring(memory), units(units_of_row), lanes(lanes_of(units_of_row)) {}

    // Units `lanes` apart are one lane's, and go one after another. Whether a lane's last was that step's.
    __device__ __forceinline__ bool next(Step &step) const {
        step.slot = step.slot + 1 == SLOTS ? 0 : step.slot + 1;
        step.first += lanes;
        bool last = step.first >= units;
        if (last) step.first = step.group += 32 * V;
        return last;
    }
    __device__ __forceinline__ bool over(const Step &step) const { return step.group >= min(lanes, units); }

    __device__ __forceinline__ void fetch(const Step &step) const {
        if (!over(step)) {
            i64 begin = F::bytes(step.first * F::UNIT);
            int count = (int)(F::bytes(min(step.first + 32 * V, units) * F::UNIT) - begin);
#pragma unroll
            for (int i = 0; i < W; i++) {
                const u8 *from = w.at[i] + begin;
                int skew = (int)((u64)from & 15);
                for (int at = 16 * (threadIdx.x % 32); at < skew + count; at += 16 * 32)
                    copy_16(ring + (step.slot * W + i) * PITCH + at, from - skew + at, min(16, skew + count - at));
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    // All steps but the last that were asked for, one less than there are slots, have come.
    static __device__ __forceinline__ void arrive() {
        asm volatile("cp.async.wait_group %0;" ::"n"(SLOTS - 1) : "memory");
        __syncwarp();
    }

    // As if the whole row lay in shared memory: where it would begin.
    __device__ __forceinline__ const u8 *row(const Step &step, int i) const {
        i64 begin = F::bytes(step.first * F::UNIT);
        return ring + (step.slot * W + i) * PITCH + ((u64)(w.at[i] + begin) & 15) - begin;
    }
};
