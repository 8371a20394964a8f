// Where a step leaves its sequences, for the next one to go on from.
#pragma once
#include "abi.cuh"

// A step's outcome for every sequence.
struct Advance {
    int *next, *error, *token, *at, *to_slot;
};

// Sequence `r` at `here` goes on to `advanced`, or stays at its last position where there is none behind.
// Whether it does.
static __device__ __forceinline__ bool place(Advance out, int r, int advanced, const int *pages, int page,
                                             int pages_width) {
    int capacity = page * pages_width;
    bool inside = advanced < capacity;
    // past the last position the next step would write nothing and read the last one
    out.at[r] = inside ? advanced : capacity - 1;
    out.to_slot[r] = inside ? pages[advanced / page] * page + advanced % page : -1;
    return inside;
}
