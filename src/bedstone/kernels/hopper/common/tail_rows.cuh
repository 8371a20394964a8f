// Rows of bfloat16 weights of several products on their way through a block's shared memory, one product after the
// other: tiles of up to sixteen rows by some of their values.
#pragma once
#include "stream.cuh"
#include "tail_job.cuh"
#include "terms.cuh"

#define WARPS 16 // that multiply: a step of each tile in turn
#define THREADS (32 * WARPS)
#define FETCHERS 4 // warps that send for weights: every fourth row of a tile, a lane each
#define GROUP 16
#define LAP_BYTES (WARPS * STEP * 2) // of a row: a step a warp
#define TILE_BYTES (GROUP * (2 * LAP_BYTES + 16))
#define MOST_STAGES 16
#define MOST_ROWS (8 * GROUP) // whose sums stand in shared memory

// All threads that multiply.
static __device__ __forceinline__ void sync_block() { asm volatile("bar.sync 0, %0;" ::"n"(THREADS) : "memory"); }

// A block's outputs of a product, and the rows of weights that they take, gate and other side by side: by groups of
// the same height, each tile as many values of a group as there is room for.
struct dealt {
    int first, outputs, rows, height;
    u32 row_bytes, piece; // of a row in a tile

    __device__ __forceinline__ void deal(const product &j) {
        i64 all = j.n[0] + j.n[1] + j.n[2];
        first = (int)(all * blockIdx.x / gridDim.x), outputs = (int)(all * (blockIdx.x + 1) / gridDim.x) - first;
        rows = outputs << j.gated, row_bytes = 2 * j.k;
        int groups = max(1, (rows + GROUP - 1) / GROUP);
        height = max(1, (rows + groups - 1) / groups);
        height += height & j.gated; // an output's rows are of one group
        piece = LAP_BYTES * min((row_bytes + LAP_BYTES - 1) / LAP_BYTES, (TILE_BYTES / height - 16) / LAP_BYTES);
    }
    // Rows lie an odd number of sixteens apart: eight of them are read at once.
    __device__ __forceinline__ u32 pitch() const { return piece + 16; }
    __device__ __forceinline__ int group_rows(int from) const { return min(height, rows - from); }
};

struct planned {
    product of;
    dealt mine;
};

// Tiles in shared memory, one after the other.
struct ring {
    u8 *memory;
    u64 *full;
    u32 memory_at, full_at, empty_at;
    int stages, at = 0;
    u32 round = 0;

    __device__ __forceinline__ ring(u8 *room, u32 bytes, u64 *barriers) : memory(room), full(barriers) {
        asm volatile("mov.u32 %0, %1;" : "=r"(full_at) : "r"(shared_address(barriers)));
        memory_at = shared_address(room), empty_at = full_at + 8 * MOST_STAGES, stages = min(MOST_STAGES, (int)(bytes / TILE_BYTES));
    }
    __device__ __forceinline__ void begin() const {
        for (int i = 0; i < stages; ++i) barrier_init(full + i, FETCHERS), barrier_init(full + MOST_STAGES + i, WARPS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __device__ __forceinline__ void move() {
        if (++at == stages) at = 0, ++round;
    }
    __device__ __forceinline__ u32 tile_at() const { return memory_at + at * TILE_BYTES; }
    __device__ __forceinline__ void wait_full() const { wait_at(full_at + 8 * at, round & 1); }
    __device__ __forceinline__ void wait_empty() const {
        if (round) wait_at(empty_at + 8 * at, (round - 1) & 1);
    }
    __device__ __forceinline__ void done() {
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive_at(empty_at + 8 * at);
        move();
    }
};

// All tiles of a product, in the order in which they are multiplied.
static __device__ __forceinline__ void fetch_product(const planned &p, ring &to) {
    const product &j = p.of;
    const dealt s = p.mine;
    int lane = threadIdx.x % 32, row = (threadIdx.x - THREADS) / 32 + FETCHERS * lane;
#pragma unroll 1
    for (int first = 0; first < s.rows; first += s.height) {
        bool mine = row < s.group_rows(first);
        int local = mine ? first + row : 0, output = s.first + (local >> j.gated), part = j.part_of(output);
        const u8 *from = j.w[part + (local & j.gated)] + (i64)output * s.row_bytes;
        u32 rows = __popc(__ballot_sync(BS_FULL, mine));
#pragma unroll 1
        for (u32 offset = 0; offset < s.row_bytes; offset += s.piece) {
            u32 bytes = min(s.piece, s.row_bytes - offset);
            to.wait_empty();
            if (lane == 0) barrier_expect(to.full + to.at, rows * bytes);
            __syncwarp();
            if (mine) bulk_copy(to.memory + to.at * TILE_BYTES + row * s.pitch(), from + offset, bytes, to.full + to.at, passing_through());
            to.move();
        }
    }
}
