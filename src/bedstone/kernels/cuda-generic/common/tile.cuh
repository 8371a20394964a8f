// What a warp makes of 16 or 32 rows of weights and up to 8 NB rows of coded activations, on the matrix
// units. Weights are the rows of the instruction, activations its columns.
//
// With g = lane / 4 and t = lane % 4 a thread reads of every 32 values of k the eight from 8t on: of
// weight rows g and g + 8, of activation row g. So fragments come from memory as they are, sixteen bytes
// at a time, and depth 2t of the instruction is another value of k, the same for both operands. Coded rows
// begin on sixteen bytes and k is a multiple of eight, as `Coding` has it.
#pragma once
#include "eights.cuh"
#include "mma.cuh"

// The operands and sums of a tile: of this thread two rows of each 16 weights, and a row of each eight activations.
template <int M, int NB>
struct Tile {
    const u8 *w[M][2];
    const code_t *x[NB];
    int k, eights;  // of activations there are, at most NB
    float sums[M][NB][4];
};

static __device__ __forceinline__ int tile_group() { return threadIdx.x % 32 / 4; }
static __device__ __forceinline__ int tile_share() { return threadIdx.x % 4; }

// Values [i, i + 8) of k; past its end zeros.
template <class F, int M, int NB>
static __device__ __forceinline__ void multiply_32(Tile<M, NB> &tile, int i) {
    Eight w[M][2];
    bool there = i < tile.k;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) w[m][h] = there ? Eights<F>::at(tile.w[m][h], i) : Eight{};
#pragma unroll
    for (int f = 0; f < NB; f++) {
        if (f >= tile.eights) break;
        Eight x = there ? load_eight(tile.x[f] + i) : Eight{};
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int d = 0; d < 4; d += 2) {
                u32 rows[4] = {w[m][0].pair[d], w[m][1].pair[d], w[m][0].pair[d + 1], w[m][1].pair[d + 1]};
                mma_16x8x16(tile.sums[m][f], rows, x.pair[d], x.pair[d + 1]);
            }
    }
}

// Fills the tile's sums.
template <class F, int M, int NB>
static __device__ __forceinline__ void multiply(Tile<M, NB> &tile) {
    constexpr int AT_ONCE = F::BLOCK > 1 || NB > 2 ? 1 : 4 / NB;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int f = 0; f < NB; f++)
#pragma unroll
            for (int i = 0; i < 4; i++) tile.sums[m][f][i] = 0.0f;
#pragma unroll(AT_ONCE)
    for (int i = 8 * tile_share(); i < (tile.k + 31) / 32 * 32; i += 32) multiply_32<F>(tile, i);
}

// `put(output, column, sums)` for each of the tile's outputs and columns that this thread has the sums of.
template <int M, int NB, class Put>
static __device__ __forceinline__ void each_sum(const Tile<M, NB> &tile, Put put) {
#pragma unroll
    for (int f = 0; f < NB; f++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float sums[M];
#pragma unroll
            for (int m = 0; m < M; m++) sums[m] = tile.sums[m][f][i];
            put(tile_group() + i / 2 * 8, 8 * f + 2 * tile_share() + i % 2, sums);
        }
}
