// Where the blocks of a launch wait for each other. All of them must be resident at once.
#pragma once
#include "abi.cuh"

#define PATIENCE 2000000000ull // ns, after which blocks that are missing will not come

// By this name devices are told of that do not hold a grid as a whole.
extern "C" {
__device__ u64 bs_arrivals[16];
}

static __device__ __forceinline__ u64 nanoseconds() {
    u64 time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

// Arrivals of all launches so far, each of which adds as many: so a launch knows before its own first where it
// began. One thread of a block arrives and waits.
struct meeting {
    u64 goal;

    // Behind `after_previous`; the blocks are to meet so many times.
    __device__ __forceinline__ void begin(u32 times) {
        u64 whole = (u64)gridDim.x * times, now;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(bs_arrivals) : "memory");
        goal = now - now % whole;
    }
    // What the block's threads wrote before a barrier is seen by whoever waits.
    __device__ __forceinline__ void meet() {
        goal += gridDim.x;
        asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(bs_arrivals), "l"(1ull) : "memory");
        u64 began = nanoseconds();
        while (arrivals() < goal)
            if (nanoseconds() - began > PATIENCE) asm volatile("trap;");
    }
    static __device__ __forceinline__ u64 arrivals() {
        u64 count;
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(count) : "l"(bs_arrivals) : "memory");
        return count;
    }
};
