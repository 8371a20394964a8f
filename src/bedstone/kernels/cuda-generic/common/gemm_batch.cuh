// A product of coded activations, as `gemm.cu` deals it: a cluster owns a share of the outputs, each of its
// blocks a share of k. Weight rows are staged in slots of 16; of a gated unit what the gate gates lies
// four slots behind it. Blocks of a cluster, four at most, add up eight slots at a time, of which each
// gives out its share: those that are as many slots behind a multiple of four.
#pragma once
#include "cluster.cuh"
#include "gemm.cuh"

#define BS_DEPTH 64 /* values of k a step */
#define BS_ROW_BYTES (BS_DEPTH * 2)
#define BS_SLOT_BYTES (16 * BS_ROW_BYTES)
#define BS_EXCHANGED 8 /* slots that a cluster adds up at once */
#define BS_COLUMNS 64  /* activation rows at once, at most */

// This block's share of a job.
struct Share {
    int from, end;             /* units of 16 outputs: those of its cluster */
    int first_step, last_step; /* steps of k: its own */
};

template <class J>
static constexpr int slots_a_unit = J::gated ? 2 : 1;

// Steps are dealt `together` at a time.
template <class J>
static __device__ __forceinline__ Share share_of(const J &job, int together) {
    i64 units = tiles_of(job, 16);
    int rank = cluster_rank(), ranks = cluster_size(), steps = ceil_div(job.k, BS_DEPTH);
    int id = (int)blockIdx.x / ranks, clusters = (int)gridDim.x / ranks, deals = ceil_div(steps, together);
    return Share{(int)(units * id / clusters), (int)(units * (id + 1) / clusters), deals * rank / ranks * together,
                 least(deals * (rank + 1) / ranks * together, steps)};
}

static __device__ __forceinline__ float4 plus(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Sums on their way between the blocks of a cluster: of each slot EIGHTS times eight activation rows, four
// sums a thread of a warp. With g = lane / 4 and t = lane % 4 they are those of outputs g and g + 8 for the
// rows 2t and 2t + 1.
template <int EIGHTS>
struct Exchange {
    static constexpr int places = EIGHTS * 32, bytes = BS_EXCHANGED * places * 16;
    float4 *buffer;

    // How many of every four slots a block gives out.
    static __device__ __forceinline__ int slots() { return 4 / cluster_size(); }
    static __device__ __forceinline__ int owner(int slot) { return slot % 4 / slots(); }
    // Where the owner of a slot has the sums that block `from` has made of it.
    __device__ __forceinline__ float4 *place(int slot, int from) const {
        int kept = slot / 4 * slots() + slot % slots();
        return buffer + (kept * cluster_size() + from) * places;
    }
    __device__ __forceinline__ float4 sum(int slot, int at) const {
        float4 all = place(slot, 0)[at];
        for (int from = 1; from < cluster_size(); from++) all = plus(all, place(slot, from)[at]);
        return all;
    }
};

template <class J>
static __device__ __forceinline__ void put_linear(const J &job, int unit, int output, int row, float4 sum) {
    Part part = part_of(job, 16, unit);
    int column = unit * 16 + output;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (row + i >= job.rows) return;
        i64 place = place_of(part, row + i);
        put_one(part, place, column, i ? sum.y : sum.x);
        put_one(part, place, column + 8, i ? sum.w : sum.z);
    }
}

template <class J>
static __device__ __forceinline__ void put_unit(const J &job, int unit, int output, int row, float4 gate,
                                                float4 up) {
    int column = unit * 16 + output;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (row + i >= job.rows) return;
        put_gated(job, row + i, column, i ? gate.y : gate.x, i ? up.y : up.x);
        put_gated(job, row + i, column + 8, i ? gate.w : gate.z, i ? up.w : up.z);
    }
}

// Gives out this block's share of eight slots, of which the first is of unit `unit`; `threads` do it.
template <int EIGHTS, class J>
static __device__ __forceinline__ void give(const J &job, Exchange<EIGHTS> exchange, int unit, int end, int row,
                                            int threads) {
    constexpr int places = Exchange<EIGHTS>::places, fours = J::gated ? 1 : 2;
    int slots = exchange.slots();
    for (int i = (int)threadIdx.x; i < fours * slots * places; i += threads) {
        int kept = i / places, at = i % places, slot = kept / slots * 4 + cluster_rank() * slots + kept % slots;
        if (unit + slot >= end) continue;
        int output = at % 32 / 4, column = row + at / 32 * 8 + at % 4 * 2;
        if constexpr (J::gated)
            put_unit(job, unit + slot, output, column, exchange.sum(slot, at), exchange.sum(slot + 4, at));
        else
            put_linear(job, unit + slot, output, column, exchange.sum(slot, at));
    }
}
