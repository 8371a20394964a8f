// Boxes of matrices that the copy engine brings to shared memory by the driver's tensor maps.
#pragma once
#include "abi.cuh"
#include "stream.cuh"

// A tensor map; those of a launch: of the activations, then of the weights.
struct alignas(64) Map {
    u8 bytes[128];
};

template <int MATRICES>
struct Maps {
    Map x, w[MATRICES];
};

// A box of a matrix: 64 values of k from `k` on, of as many rows from `row` on as the map says; zeros
// past its ends. Its bytes arrive at the barrier.
static __device__ __forceinline__ void copy_box(u8 *to, const Map *map, int k, int row, u64 *barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(shared_address(to)),
        "l"(map), "r"(k), "r"(row), "r"(shared_address(barrier))
        : "memory");
}
