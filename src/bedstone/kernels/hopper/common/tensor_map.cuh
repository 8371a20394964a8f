// Boxes of matrices that the copy engine brings to a ring in shared memory, by the driver's tensor maps.
#pragma once
#include "abi.cuh"
#include "stream.cuh"

// A ring's next stage, and how often its barriers have turned.
struct Turn {
    int stage;
    u32 parity;
    __device__ __forceinline__ void next(int stages) {
        if (++stage == stages) stage = 0, parity ^= 1;
    }
};

// A tensor map. Those of a launch: of the activations, then of each matrix of weights, some heights of
// boxes each, since a large box is asked for as quickly as a small one.
struct alignas(64) Map {
    u8 bytes[128];
};

template <int MATRICES, int OF_X, int OF_W>
struct Maps {
    Map x[OF_X], w[MATRICES][OF_W];
};

static __device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// A box of a matrix: 64 values of k from `k` on, of as many rows from `row` on as the map says; zeros
// past its ends. It goes to an address in shared memory, its bytes arrive at the barrier.
static __device__ __forceinline__ void copy_box(u32 to, const Map *map, int k, int row, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(to),
        "l"(map), "r"(k), "r"(row), "r"(barrier)
        : "memory");
}

// The same of what passes through: weights that no other block reads.
static __device__ __forceinline__ void copy_box_through(u32 to, const Map *map, int k, int row, u32 barrier, u64 policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], "
        "[%4], %5;" ::"r"(to),
        "l"(map), "r"(k), "r"(row), "r"(barrier), "l"(policy)
        : "memory");
}
