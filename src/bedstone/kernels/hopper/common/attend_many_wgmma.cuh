// Attention of many rows of one sequence over bfloat16 keys and values by warpgroups.
//
// A block is 128 rows of one head, a warpgroup 64 of them. Values of one tile of positions are multiplied
// while the softmax of the next is taken; copies are a tile further on. Queries and weights are
// multiplied from registers.
#pragma once
#include "attend_rows.cuh"
#include "wgmma.cuh"

// `a` [64, 16] stands in registers behind the accumulators, then B's place and `more`: 0 starts from
// zeros. `turned` 1: the depths of B are its rows.
#define BS_WGMMA_HELD(shape, text, rows_at, b_at, more_at, turned, ...)                                              \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " more_at ", 0;\n"                                       \
                 "wgmma.mma_async.sync.aligned." shape ".f32.bf16.bf16 {" text "}, {" rows_at "}, " b_at    \
                 ", p, 1, 1, " turned ";\n}\n"                                                           \
                 : __VA_ARGS__                                                                           \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns), "r"(more))

static __device__ __forceinline__ void multiply_held(float (&d)[32], const u32 (&a)[4], u64 columns, int more) {
    BS_WGMMA_HELD("m64n64k16", BS_TEXT_0_31, "%32,%33,%34,%35", "%36", "%37", "0", BS_D32(0));
}
static __device__ __forceinline__ void add_held(float (&d)[32], const u32 (&a)[4], u64 columns) {
    const int more = 1;
    BS_WGMMA_HELD("m64n64k16", BS_TEXT_0_31, "%32,%33,%34,%35", "%36", "%37", "1", BS_D32(0));
}
static __device__ __forceinline__ void add_held(float (&d)[64], const u32 (&a)[4], u64 columns) {
    const int more = 1;
    BS_WGMMA_HELD("m64n128k16", BS_TEXT_0_31 "," BS_TEXT_32_63, "%64,%65,%66,%67", "%68", "%69", "1", BS_D32(0),
                  BS_D32(32));
}

// A tile of D values a position: blocks of 64 values, each a row of 128 bytes a position.
#define BLOCK_BYTES (TILE * 128)
#define RING 4  // tiles whose rows are known

static __device__ __forceinline__ void copies_are_seen() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Keys and values of two tiles each, and where the table's rows of four begin, in units of 16 bytes.
template <int D>
struct Stages {
    u32 keys, values;
    u32 *rows;

    static constexpr int BYTES = TILE * D * 2, PIECES = D / 8, STEP = ATTEND_THREADS / PIECES;

    // Tile `i` of positions from `from` on.
    __device__ __forceinline__ void fetch(const Lines<bf16> &lines, int group, u32 to, int i) const {
        int piece = threadIdx.x % PIECES;
        u32 column = to + i % 2 * BYTES + piece / 8 * BLOCK_BYTES;
        const uint4 *x = (const uint4 *)(lines.x + group * lines.unit) + piece;
        int first = threadIdx.x / PIECES;
        column += first * 128 + (piece % 8 ^ first % 8) * 16;
        const u32 *begins = rows + i % RING * TILE + first;
#pragma unroll
        for (int j = 0; j < TILE; j += STEP) copy_16(column + j * 128, x + begins[j]);
    }
    __device__ __forceinline__ u32 keys_of(int i) const { return keys + i % 2 * BYTES; }
    __device__ __forceinline__ u32 values_of(int i) const { return values + i % 2 * BYTES; }
};

// Issues the products of a tile's keys.
template <int D>
static __device__ __forceinline__ void multiply_keys(const Queries<D> &q, u32 keys, float (&score)[TILE / 2]) {
    wgmma_begin();
#pragma unroll
    for (int s = 0; s < D / 16; s++)
        multiply_held(score, q.at[s], wgmma_tile(keys + s / 4 * BLOCK_BYTES + s % 4 * 32), s > 0);
    wgmma_commit();
}

// Of rows that are depths: blocks of 64 columns follow each other, and eight rows 1,024 bytes on.
static __device__ __forceinline__ u64 turned_tile(u32 address) {
    return (u64)(address >> 4 & 0x3fff) | (u64)(BLOCK_BYTES >> 4) << 16 | 64ull << 32 | 1ull << 62;
}

template <int D>
static __device__ __forceinline__ void add_values(const u32 (&weights)[TILE / 16][4], u32 values, Outputs<D> &out) {
    wgmma_begin();
#pragma unroll
    for (int s = 0; s < TILE / 16; s++) add_held(out.acc, weights[s], turned_tile(values + s * 16 * 128));
    wgmma_commit();
}

// The rows of a head that a block attends, and where it stands.
template <int D>
struct Walk {
    const Attention<bf16> &a;
    const RowPair &pair;
    Span span;
    int group, from, tiles;
    Stages<D> stages;

    // Where the row of a thread's position in tile `i` begins: of keys as of values.
    __device__ __forceinline__ u32 row_of(int i) const {
        return (u32)(a.k.row(min(from + i * TILE + (int)threadIdx.x % TILE, span.last)) * a.k.pitch / 8);
    }
    __device__ __forceinline__ void fetch_keys(int i) const {
        if (i < tiles) stages.fetch(a.k, group, stages.keys, i);
    }
    __device__ __forceinline__ void fetch_values(int i) const {
        if (i < tiles) stages.fetch(a.v, group, stages.values, i);
    }

    // Tile `i` of keys and tile `i - 1` of values are there; those after them are on their way.
    __device__ __forceinline__ void turn(int i) const {
        copies_wait<0>();
        copies_are_seen();
        __syncthreads();
        fetch_keys(i + 1);
        fetch_values(i);
        copies_end();
    }

    __device__ __forceinline__ void weigh(int i, float (&score)[TILE / 2], Outputs<D> &out, float (&by)[2]) const {
        int at = from + i * TILE;
        cap_scores(a.softcap, score);
        mask_scores(pair, at, score);
        soften(score, out, by);
    }

    __device__ __forceinline__ void run(const Queries<D> &q, Outputs<D> &out) const {
        float score[TILE / 2] = {}, by[2];
        u32 weights[TILE / 16][4];
        auto code = [&] {
#pragma unroll
            for (int s = 0; s < TILE / 16; s++) code_weights(score + 8 * s, weights[s]);
        };
        int ahead = threadIdx.x / TILE;
        if (ahead < RING - 1) stages.rows[ahead * TILE + threadIdx.x % TILE] = row_of(ahead);
        __syncthreads();
        fetch_keys(0);
        copies_end();
        turn(0);
        multiply_keys(q, stages.keys_of(0), score);
        wgmma_wait<0>(score);
        weigh(0, score, out, by);
        code();
        for (int i = 1; i < tiles; i++) {
            turn(i);
            bool looks_up = threadIdx.x < TILE && i + 2 < tiles;
            u32 row = looks_up ? row_of(i + 2) : 0;
            multiply_keys(q, stages.keys_of(i), score);
            add_values(weights, stages.values_of(i - 1), out);
            wgmma_wait<1>(score);
            weigh(i, score, out, by);
            if (looks_up) stages.rows[(i + 2) % RING * TILE + threadIdx.x] = row;
            wgmma_wait<0>(out.acc);
            shrink(out, by);
            code();
        }
        copies_wait<0>();
        copies_are_seen();
        __syncthreads();
        add_values(weights, stages.values_of(tiles - 1), out);
        wgmma_wait<0>(out.acc);
    }
};

// Rows [first, first + ROWS) of head `blockIdx.y`.
template <int D>
static __device__ __forceinline__ void attend_many(const Attention<bf16> &a, int first, int rows) {
    extern __shared__ float4 memory[];
    __shared__ u32 table_rows[RING * TILE];
    u32 base = ((u32)__cvta_generic_to_shared(memory) + 1023) / 1024 * 1024;
    int head = blockIdx.y, group = head / (a.heads / a.groups);
    RowPair pair = rows_of_thread(a, first, rows);
    Span span = span_of_block(pair);
    int from = span.first / TILE * TILE, tiles = span.last < 0 ? 0 : (span.last - from) / TILE + 1;
    Walk<D> walk = {a, pair, span, group, from, tiles, Stages<D>{base, base + 2 * Stages<D>::BYTES, table_rows}};
    Outputs<D> out = {};
    out.top[0] = out.top[1] = -BS_INFINITY;
    Queries<D> q;
    q.read(a, head, pair);
    if (tiles) walk.run(q, out);
    finish_rows(a, head, pair, out);
}
