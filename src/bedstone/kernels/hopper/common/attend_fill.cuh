// What a block of attend_many_wgmma.cuh takes in turn, and the warps that bring keys and values for it.
#pragma once
#include "attend_rows.cuh"
#include "stream.cuh"
#include "tensor_map.cuh"

#define SLOTS 4       // keys of two tiles, values of two
#define FILLERS 4     // warps, each a slot's
#define MULTIPLIERS 8 // warps, each 16 rows of an item
#define BOX_ROWS 32   // of a table, that the copy engine brings at once

// A tile of D values a position: blocks of 64 values, each a row of 128 bytes a position.
#define BLOCK_BYTES (TILE * 128)

// The tables by boxes of 64 values of BOX_ROWS rows.
struct Tables {
    Map k, v;
};

static __device__ __forceinline__ void copies_are_seen() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Tables that launches before wrote by ordinary stores, by the copy engine.
static __device__ __forceinline__ void tables_are_seen() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// What a block has in shared memory: queries, slots of keys and of values, queries yet to be laid out.
template <int D>
struct Memory {
    static constexpr int TILE_BYTES = TILE * D * 2;
    u32 base;
    u64 *full, *empty;  // a barrier a slot

    __device__ __forceinline__ u32 queries(int warpgroup) const { return base + warpgroup * 64 * D * 2; }
    __device__ __forceinline__ u32 slot(int i) const { return base + ROWS * D * 2 + i * TILE_BYTES; }
    // Sixteen bytes that one thread writes and reads.
    __device__ __forceinline__ u32 own(int i) const { return slot(SLOTS) + (i * MULTIPLIERS * 32 + threadIdx.x) * 16; }

    // Where a block's tiles lie, one after another, and the parity of their barriers by then.
    static __device__ __forceinline__ int keys_of(int tile) { return tile % 2 * 2; }
    static __device__ __forceinline__ int values_of(int tile) { return tile % 2 * 2 + 1; }
    static __device__ __forceinline__ u32 parity_of(int tile) { return tile / 2 % 2; }
};

// Rows [first, first + ROWS) of a head, and the tiles of positions that they see.
struct Item {
    int head, first, from, tiles;
    Span span;
};

// A block's items, one after another: those that see most come first, and blocks that had more of one round
// have less of the next.
struct Items {
    const Attention<bf16> &a;
    int rows, round;

    // Whether there is another.
    __device__ __forceinline__ bool next(Item &item) {
        int heights = (rows + ROWS - 1) / ROWS, blocks = gridDim.x, block = blockIdx.x;
        int i = round * blocks + (round % 2 ? blocks - 1 - block : block);
        round++;
        if (i >= heights * a.heads) return false;
        item.head = i % a.heads;
        item.first = (heights - 1 - i / a.heads) * ROWS;
        item.span = span_of_rows(a, item.first, rows);
        item.from = item.span.first / TILE * TILE;
        item.tiles = item.span.last < 0 ? 0 : (item.span.last - item.from) / TILE + 1;
        return true;
    }
};

// A warp that keeps one slot filled: with keys or values of every other tile.
template <int D>
struct Filler {
    static constexpr int PIECES = D / 8, STEP = 32 / PIECES;  // of 16 bytes; rows at once
    const Attention<bf16> &a;
    const Tables &tables;
    const Memory<D> &memory;
    int slot;

    __device__ __forceinline__ bool has_values() const { return slot % 2; }

    // Boxes of a tile, a lane each.
    __device__ __forceinline__ void copy_boxes(int from, int group) const {
        int lane = threadIdx.x % 32, row = lane / (D / 64) * BOX_ROWS, block = lane % (D / 64);
        u64 *full = memory.full + slot;
        if (lane == 0) barrier_expect(full, memory.TILE_BYTES);
        __syncwarp();
        if (row < TILE)
            copy_box(memory.slot(slot) + block * BLOCK_BYTES + row * 128, has_values() ? &tables.v : &tables.k,
                     group * D + block * 64, (int)a.k.row(from + row), shared_address(full));
    }

    // Where one of 32 rows begins in the table, in units of 16 bytes: of those that a lane takes pieces of.
    __device__ __forceinline__ u32 look_up(const Item &item, int from) const {
        int lane = threadIdx.x % 32, row = lane % PIECES * STEP + lane / PIECES;
        return (u32)(a.k.row(min(from + row, item.span.last)) * a.k.pitch / 8);
    }
    __device__ __forceinline__ void copy_32(const uint4 *x, u32 to, u32 column, u32 begins) const {
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            u32 begin = __shfl_sync(BS_FULL, begins, i, PIECES);
            copy_16(to + i * STEP * 128 + (column ^ i * STEP % 8 * 16), x + begin);
        }
    }
    // Row by row, wherever they lie; the last position stands for those behind it.
    __device__ __forceinline__ void copy_rows(const Item &item, int from, int group) const {
        const Lines<bf16> &lines = has_values() ? a.v : a.k;
        int piece = threadIdx.x % PIECES, row = threadIdx.x % 32 / PIECES;
        const uint4 *x = (const uint4 *)(lines.x + group * lines.unit) + piece;
        u32 to = memory.slot(slot) + piece / 8 * BLOCK_BYTES + row * 128, begins = look_up(item, from);
#pragma unroll 1
        for (int i = 0; i < TILE; i += 32) {
            u32 next = look_up(item, from + i + 32);
            copy_32(x, to + i * 128, (piece % 8 ^ row) * 16, begins);
            begins = next;
        }
        copies_end();
        copies_wait<0>();
        copies_are_seen();
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(memory.full + slot);
    }

    // Tile `i` of an item, `tile` of the block's.
    __device__ __forceinline__ void fill(const Item &item, int i, int tile) const {
        int from = item.from + i * TILE, group = item.head / (a.heads / a.groups);
        barrier_wait(memory.empty + slot, memory.parity_of(tile) ^ 1);
        if (a.k.page % BOX_ROWS == 0 && from + TILE - 1 <= item.span.last) copy_boxes(from, group);
        else copy_rows(item, from, group);
    }

    __device__ __forceinline__ void run(int rows) const {
        int done = 0;
        Items items = {a, rows, 0};
        tables_are_seen();
        for (Item item; items.next(item); done += item.tiles)
            for (int i = (done + slot / 2) % 2; i < item.tiles; i += 2) fill(item, i, done + i);
    }
};
