// Attention of one row over bfloat16 keys and values: what a block does. A row's bits hang on the warps and
// blocks that share it, and on nothing else.
#pragma once
#include "attend_fold.cuh"

// Everything of a lot that no launch of the step decides.
template <int D>
struct Work {
    Lot lot;
    Scoring scoring;
    Stream<D> stream;

    __device__ __forceinline__ Work(const Attention<bf16> &a, Lot of)
        : lot(of), scoring(a), stream(a, lot.group, lot.step(), ring()) {
        settle(lot.group);
        settle(lot.first);
        settle(lot.count);
    }
    static __device__ __forceinline__ float *memory() {
        extern __shared__ float4 rings[];
        return (float *)rings;
    }
    static __device__ __forceinline__ u32 ring() {
        return (u32)__cvta_generic_to_shared(memory()) + threadIdx.x / 32 * STAGES * Stream<D>::STAGE;
    }
};

// `from` gives queries, and mends what keys do not lie in memory yet.
template <int D, class From>
static __device__ __forceinline__ void attend_lot(const Attention<bf16> &a, Work<D> &work, From &from,
                                                  Block<D> &block) {
    const Lot &lot = work.lot;
    Span span = span_of(a.position[lot.row], a.window);
    int tile = lot.tile(span.first / TILE);
    Queries<D> queries;
    Running<D> own;
    work.stream.look(span, tile);
    from.load(a, lot, span, block);
    if (lot.blocks > 1) expect(lot, block.inbox);
    work.stream.fill(span, tile);
    from.read(a, lot, span, block, queries);
    // every block is here, and done with what others sent it before
    if (lot.blocks > 1) cluster_arrive_relaxed();
    work.stream.run(span, tile, [&](int tile, u32 keys) {
        from.mend(span, tile, keys);
        float score[4];
        bool seen[4];
        int t = tile * TILE + 2 * (threadIdx.x % 4) - span.first;
#pragma unroll
        for (int i = 0; i < 4; i++) seen[i] = (u32)(t + i / 2 * 8 + i % 2) <= (u32)(span.last - span.first);
        queries.multiply(Blocks<D>(keys), score);
        work.scoring.apply(score);
        own.add(own.weigh(seen, score), Blocks<D>(keys + TILE_BYTES<D>));
    });
    fold(own, work.memory(), block);
    if (lot.blocks == 1) {
        finish_alone(a, lot, span, work.memory(), block);
        return;
    }
    cluster_wait();
    give(lot, work.memory(), block);
    inbox_wait(&block.inbox.came, block.inbox.parity);
    finish_given(a, lot, span, block.inbox);
}

// Queries as they lie in memory, and keys that all lie there.
template <int D>
struct Given {
    Floats<D> floats;

    __device__ __forceinline__ void load(const Attention<bf16> &a, const Lot &lot, Span, Block<D> &) {
        floats.read(a.q + ((i64)lot.row * a.heads + lot.first) * D, D, lot.count);
    }
    __device__ __forceinline__ void read(const Attention<bf16> &, const Lot &lot, Span, Block<D> &,
                                         Queries<D> &queries) const {
        queries.set(floats, lot.count);
    }
    __device__ __forceinline__ void mend(Span, int, u32) const {}
};

static __device__ __forceinline__ int hint(const int *p) {
    int x;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return x;
}

// Sends for the first tiles' keys and values, as far as the second-level cache, while the launch ahead
// still runs. Position and pages may be those of the step before: what is made of them is where to look,
// and all that counts is read again afterwards, so nothing needs an order.
template <int D>
static __device__ __forceinline__ void attend_ahead(const Attention<bf16> &a, const Work<D> &work) {
#if __CUDA_ARCH__ >= 900
    const Lot &lot = work.lot;
    const Pages &pages = work.stream.pages;
    Span span = span_of(hint(a.position + lot.row), a.window);
    int lane = threadIdx.x % 32, tile = lot.tile(span.first / TILE);
    const bf16 *x = (lane < TILE ? a.k.x : a.v.x) + lot.group * D;
#pragma unroll 1
    for (int i = 0; i < STAGES; i++, tile += lot.step()) {
        int t = tile * TILE + lane % TILE;
        if (t > span.last) return;
        Spot spot = pages.find(t);
        i64 row = hint(pages.of + spot.page) * pages.page + spot.rest;
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(x + row * a.groups * D), "r"(2 * D)
                     : "memory");
    }
#endif
}

// All lots of this block. Where there are no clusters the first block of a row does it all.
template <int D, class From>
static __device__ __forceinline__ void attend_lots(const Attention<bf16> &a, From from) {
    __shared__ Block<D> block;
    before_next();
    int lots = lots_of(a), which = blockIdx.y;
    Work<D> work(a, lot_of(a, which));
    bool works = which < lots && (work.lot.blocks > 1 || blockIdx.z == 0);
    if (threadIdx.x == 0) {
        inbox_init(&block.inbox.came);
        block.inbox.parity = 0;
    }
    if (works) attend_ahead(a, work);
    after_previous();
    if (!works) return;
#pragma unroll 1
    while (true) {
        attend_lot<D>(a, work, from, block);
        which += gridDim.y;
        if (which >= lots) return;
        __syncthreads();
        if (threadIdx.x == 0) block.inbox.parity ^= 1;
        work = Work<D>(a, lot_of(a, which));
    }
}
