// What blocks of a launch tell each other: sixteen bytes at once, of which the last four say in which launch that was.
// Who waits for them reads them until they say so, and then has them. All blocks must be resident at once.
#pragma once
#include "abi.cuh"

#define PATIENCE 2000000000ull // ns, after which blocks that are missing will not come

// By this name devices are told of that do not hold a grid as a whole: the starts of blocks, of all launches so far.
extern "C" {
__device__ u64 bs_arrivals[16];
}

static __device__ __forceinline__ u64 nanoseconds() {
    u64 time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

// Launches before this one, for one thread of each block, behind `after_previous`: all starts of those are counted,
// and of this one's not yet the block's own.
static __device__ __forceinline__ u64 launches_before() {
    u64 starts;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(starts) : "l"(bs_arrivals) : "memory");
    return starts / gridDim.x;
}

// By the same thread, later: nobody waits for it.
static __device__ __forceinline__ void count_start() {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(bs_arrivals), "l"(1ull) : "memory");
}

// A launch in what it tells: never 0, which is what memory says that nobody told.
static __device__ __forceinline__ u32 mark_of(u64 launch) { return (u32)(launch % 0xffffffffu) + 1; }

// A word and the launch go as one.
static __device__ __forceinline__ void tell(uint4 *to, u32 a, u32 b, u32 c, u32 launch) {
    asm volatile(
        "{\n"
        ".reg .b64 low, high;\n"
        ".reg .b128 all;\n"
        "mov.b64 low, {%1, %2};\n"
        "mov.b64 high, {%3, %4};\n"
        "mov.b128 all, {low, high};\n"
        "st.relaxed.gpu.global.b128 [%0], all;\n"
        "}\n" ::"l"(to), "r"(a), "r"(b), "r"(c), "r"(launch)
        : "memory");
}

static __device__ __forceinline__ uint4 ask(const uint4 *from) {
    uint4 v;
    asm volatile(
        "{\n"
        ".reg .b64 low, high;\n"
        ".reg .b128 all;\n"
        "ld.relaxed.gpu.global.b128 all, [%4];\n"
        "mov.b128 {low, high}, all;\n"
        "mov.b64 {%0, %1}, low;\n"
        "mov.b64 {%2, %3}, high;\n"
        "}\n"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from)
        : "memory");
    return v;
}

// For who looks again and again: ends the launch where that has taken too long.
struct patience {
    u64 began = 0;
    u32 looks = 0;

    __device__ __forceinline__ void look() {
        if (++looks % 1024) return;
        u64 now = nanoseconds();
        if (!began) began = now;
        if (now - began > PATIENCE) asm volatile("trap;");
    }
};

// Words every `step`, until all of the first `count` have been told; those of them are asked for at once.
template <int N>
static __device__ __forceinline__ void ask_all(uint4 (&v)[N], const uint4 *from, int step, int count, u32 launch) {
    patience waits;
    bool missing = false;
#pragma unroll
    for (int n = 0; n < N; ++n) v[n] = make_uint4(0, 0, 0, n < count ? 0 : launch);
#pragma unroll 1
    do {
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (v[n].w != launch) v[n] = ask(from + n * step);
        missing = false;
#pragma unroll
        for (int n = 0; n < N; ++n) missing |= v[n].w != launch;
        waits.look();
    } while (missing);
}
