// A tile of 16 positions in shared memory: rows of keys or of values D wide, laid so that the same piece
// of eight rows lies in different banks, as the matrix units' loads ask.
#pragma once
#include "attention.cuh"
#include "copies.cuh"

#define TILE 16

template <int D>
constexpr int TILE_BYTES = TILE * D * 2;

// Piece c, of 16 bytes, of row r.
template <int D>
static __device__ __forceinline__ u32 place_of(int r, int c) {
    return r * 2 * D + ((c ^ (r & 7)) << 4);
}

// The keys of a tile and behind them its values, whose rows half a warp holds: `row` of threads `from` on.
// Both begin at this thread's piece of row 0 of their tables, whose rows are `pitch` bytes.
template <int D>
static __device__ __forceinline__ void copy_tiles(const u8 *keys, const u8 *values, int pitch, int row, int from,
                                                  u32 to) {
    constexpr int PIECES = D / 8, AT_ONCE = 32 / PIECES;
    int lane = threadIdx.x % 32, r = lane / PIECES;
    u32 own = place_of<D>(r, lane % PIECES);
#pragma unroll
    for (int i = 0; i < TILE; i += AT_ONCE) {
        i64 at = (i64)__shfl_sync(BS_FULL, row, from + i + r) * pitch;
        u32 there = to + i * 2 * D + (own ^ (i & 7) << 4);
        copy_16(there, keys + at);
        copy_16(there + TILE_BYTES<D>, values + at);
    }
}

// What this thread says where four blocks of 8 by 8 lie: rows 0 to 7 and 8 to 15 of columns 16 s and 16 s + 8.
template <int D>
struct Blocks {
    u32 tile, own;

    __device__ __forceinline__ explicit Blocks(u32 tile) : tile(tile) {
        int lane = threadIdx.x % 32;
        own = place_of<D>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    }
    __device__ __forceinline__ u32 at(int s) const { return tile + (own ^ s << 5); }

    // Thread (g, t) gets of row g columns 2t and 2t + 1 of each block.
    __device__ __forceinline__ void read(int s, u32 (&v)[4]) const {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(at(s))
                     : "memory");
    }
    // Of column g rows 2t and 2t + 1.
    __device__ __forceinline__ void read_turned(int s, u32 (&v)[4]) const {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(at(s))
                     : "memory");
    }
};
