// Weights of a row's products on their way through a block's shared memory, one product after the other.
#pragma once
#include "stream.cuh"
#include "tail_job.cuh"
#include "tail_spans.cuh"

#define SPLIT 8 // warps of a team: each has every eighth span of sixteen rows
#define TEAMS 2 // they have sixteen rows each in turn
#define WARPS (SPLIT * TEAMS)
#define THREADS (32 * WARPS)
#define FETCHERS 4 // warps that send for weights, four rows of a tile each
#define MOST_STAGES 12
#define SPAN_BYTES (u32)format::bytes(SPAN)
#define PIECE (SPLIT * SPAN_BYTES)
#define FLYING_BYTES (74 * 1024) // on their way at most: what blocks tell each other waits behind them
#define FLYING_HELD 2            // tiles that are while the block waits for others

// Not 0 while the block waits for others.
static __shared__ u32 held;

// All threads that multiply.
static __device__ __forceinline__ void sync_block() { asm volatile("bar.sync 0, %0;" ::"n"(THREADS) : "memory"); }

// A block's outputs of a product, in whole lots where they are told of. They go by sixteens; gated, a sixteen is two
// turns, one a stream.
struct dealt {
    int first, outputs, turns, pieces;

    __device__ __forceinline__ explicit dealt(const product &j) {
        int unit = j.told ? LOT : 1;
        i64 all = (j.n[0] + j.n[1] + j.n[2]) / unit;
        first = (int)(all * blockIdx.x / gridDim.x) * unit, outputs = (int)(all * (blockIdx.x + 1) / gridDim.x) * unit - first;
        turns = (outputs + GROUP - 1) / GROUP << j.gated, pieces = (j.k + SPLIT * SPAN - 1) / (SPLIT * SPAN);
    }
};

// Tiles in shared memory: sixteen rows by a span for each warp of a team. A row lies an odd number of sixteens from
// the next: eight of them are read at once. The teams' tiles alternate.
struct ring {
    u8 *memory;
    u64 *full;
    u32 full_at, empty_at;
    int stages, flying, at = 0; // `flying` tiles are on their way at most
    u32 round = 0;
    bool exact; // every row of a tile begins on 16 bytes and is whole sixteens
    u32 pitch, stage;

    __device__ __forceinline__ ring(u8 *room, u32 bytes, u64 *barriers, bool whole) : memory(room), full(barriers), exact(whole) {
        asm volatile("mov.u32 %0, %1;" : "=r"(full_at) : "r"(shared_address(barriers)));
        empty_at = full_at + 8 * MOST_STAGES;
        pitch = pitch_of<tail_spans<format>>(PIECE + (exact ? 0 : 30)), stage = GROUP * (pitch + 1);
        settle(pitch), settle(stage);
        stages = min(MOST_STAGES, (int)(bytes / stage)), flying = min(stages, max(2, FLYING_BYTES / (GROUP * (int)PIECE)));
    }
    __device__ __forceinline__ void begin() const {
        for (int i = 0; i < stages; ++i) barrier_init(full + i, FETCHERS), barrier_init(full + MOST_STAGES + i, SPLIT);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __device__ __forceinline__ void move(int by) {
        at += by;
#pragma unroll 1
        while (at >= stages) at -= stages, ++round;
    }
    __device__ __forceinline__ u8 *tile() const { return memory + at * stage; }

    __device__ __forceinline__ void wait_full() const { wait_at(full_at + 8 * at, round & 1); }
    __device__ __forceinline__ void done(bool leads) const {
        __syncwarp();
        if (leads) arrive_at(empty_at + 8 * at);
    }
    // Until this tile's place is free and the tile so many before it as may be on their way has arrived.
    __device__ __forceinline__ void wait_empty() const {
        int most = *(volatile u32 *)&held ? FLYING_HELD : flying;
        bool before = at < most;
        if (round) wait_at(empty_at + 8 * at, (round - 1) & 1);
        if (round || !before) wait_at(full_at + 8 * (at - most + (before ? stages : 0)), (before ? round - 1 : round) & 1);
    }
};

// One warp's rows of a tile, a lane a row. `from` is where the row's piece begins, `end` where its matrix does.
static __device__ __forceinline__ void fetch_rows(const ring &to, const u8 *from, const u8 *end, u32 bytes, int row, bool mine) {
    u8 *tile = to.tile(), *lies = tile + row * to.pitch;
    u32 moved = mine ? bytes : 0;
    // rows that are not there are multiplied all the same
    if (!to.exact && threadIdx.x % 32 < GROUP / FETCHERS) tile[GROUP * to.pitch + row] = skew(from);
    if (!to.exact && mine) {
        moved = bulk_bytes(from, bytes, end), copy_rest(lies, from, bytes, end);
        from -= skew(from);
    }
    u32 all = __reduce_add_sync(BS_FULL, moved);
    if (threadIdx.x % 32 == 0) barrier_expect(to.full + to.at, all);
    __syncwarp();
    if (moved) bulk_copy(lies, from, moved, to.full + to.at, passing_through());
}

// All tiles of a product, in the order in which they are multiplied.
static __device__ __forceinline__ void fetch_product(const product &j, ring &to) {
    dealt s(j);
    int lane = threadIdx.x % 32, row = (threadIdx.x - THREADS) / 32 * (GROUP / FETCHERS) + lane;
    u32 row_bytes = (u32)format::bytes(j.k);
#pragma unroll 1
    for (int pair = 0; pair < s.turns; pair += TEAMS)
#pragma unroll 1
        for (u32 offset = 0; offset < row_bytes; offset += PIECE)
#pragma unroll 1
            for (int turn = pair; turn < min(pair + TEAMS, s.turns); ++turn) {
                int local = (turn >> j.gated) * GROUP + row;
                bool mine = lane < GROUP / FETCHERS && local < s.outputs;
                int output = s.first + (mine ? local : 0), part = j.part_of(output);
                const u8 *w = j.w[part + (turn & j.gated)], *end = w + (i64)j.n[part] * row_bytes;
                to.wait_empty();
                fetch_rows(to, w + (i64)output * row_bytes + offset, end, min(PIECE, row_bytes - offset), row, mine);
                to.move(1);
            }
}
