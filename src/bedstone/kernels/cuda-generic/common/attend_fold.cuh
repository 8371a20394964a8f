// What the warps of a block have made put together, and what the blocks of a cluster have.
#pragma once
#include "attend_lot.cuh"

// The warps of a block put together, relative to the highest of their tops; their values stay apart.
template <int D>
static __device__ __forceinline__ void fold(Running<D> &own, float *slices, Block<D> &block) {
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
    block.warps[warp][g] = make_float2(own.top, own.whole_sum());
    // rings are done with: values take their place
    __syncthreads();
    float highest = -BS_INFINITY, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < WARPS; i++) highest = fmaxf(highest, block.warps[i][g].x);
#pragma unroll
    for (int i = 0; i < WARPS; i++)
        sum = fmaf(block.warps[i][g].y, shrunk_2(block.warps[i][g].x, highest), sum);
    own.lay(slices + warp * HEADS * SLICE, highest);
    block.all[g] = make_float2(highest, sum);
    __syncthreads();
}

// Four values from i on.
template <int D>
static __device__ __forceinline__ Pack<4> folded(const float *slices, int i) {
    Pack<4> total = load<4>(slices + i / D * SLICE + i % D);
#pragma unroll
    for (int w = 1; w < WARPS; w++)
        total = each(total, load<4>(slices + (w * HEADS + i / D) * SLICE + i % D),
                     [](float x, float y) { return x + y; });
    return total;
}

// What values are multiplied by. A row before the first position sees nothing: its output is zero.
static __device__ __forceinline__ float share_of(float sum, Span span) {
    return span.last < span.first ? 0.0f : __frcp_rn(sum);
}

template <int D>
static __device__ __forceinline__ void finish_alone(const Attention<bf16> &a, const Lot &lot, Span span,
                                                    const float *slices, const Block<D> &block) {
#pragma unroll 1
    for (int i = 4 * threadIdx.x; i < lot.count * D; i += 4 * THREADS) {
        float by = share_of(block.all[i / D].y, span);
        a.finish(lot.row, lot.first + i / D, i % D, each(folded<D>(slices, i), [by](float x) { return x * by; }));
    }
}

// Before this block tells the others that it is here.
template <int D>
static __device__ __forceinline__ void expect(const Lot &lot, Inbox<D> &inbox) {
    int runs = lot.count * D / 32, own = (runs - lot.rank + lot.blocks - 1) >> log_of(lot.blocks);
    if (threadIdx.x == 0) inbox_expect(&inbox.came, lot.blocks * (own * 32 * 4 + (int)sizeof(Tops)));
}

template <int D>
static __device__ __forceinline__ void give(const Lot &lot, const float *slices, Block<D> &block) {
    Inbox<D> &inbox = block.inbox;
    int log = log_of(lot.blocks), mine = lot.rank * Inbox<D>::pitch(lot.blocks);
#pragma unroll 1
    for (int i = 4 * threadIdx.x; i < lot.count * D; i += 4 * THREADS) {
        int run = i / 32, place = mine + (run >> log) * 32 + i % 32;
        Pack<4> v = folded<D>(slices, i);
        send_4(inbox.values + place, &inbox.came, run & (lot.blocks - 1), v.at[0], v.at[1], v.at[2], v.at[3]);
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < lot.blocks * HEADS; i += THREADS) {
        float2 v = block.all[i % HEADS];
        send_2(inbox.tops[lot.rank] + i % HEADS, &inbox.came, i / HEADS, v.x, v.y);
    }
}

template <int D>
static __device__ __forceinline__ void finish_given(const Attention<bf16> &a, const Lot &lot, Span span,
                                                    const Inbox<D> &inbox) {
    int pitch = Inbox<D>::pitch(lot.blocks);
#pragma unroll 1
    for (int own = threadIdx.x; own < pitch; own += THREADS) {
        int i = (own / 32 * lot.blocks + lot.rank) * 32 + own % 32, h = i / D;
        if (h >= lot.count) break;
        float top = -BS_INFINITY, sum = 0.0f, value = 0.0f;
#pragma unroll 4
        for (int b = 0; b < lot.blocks; b++) top = fmaxf(top, inbox.tops[b][h].x);
#pragma unroll 4
        for (int b = 0; b < lot.blocks; b++) {
            float2 state = inbox.tops[b][h];
            float by = shrunk_2(state.x, top);
            sum = fmaf(state.y, by, sum);
            value = fmaf(inbox.values[b * pitch + own], by, value);
        }
        a.finish(lot.row, lot.first + h, i % D, Pack<1>{{value * share_of(sum, span)}});
    }
}
