// Attention of many rows of one sequence over bfloat16 keys and values by warpgroups.
//
// A block takes items of 128 rows of one head, one after another, a warpgroup 64 rows of each; four warps
// more bring keys and values. Values of one tile of positions are multiplied while the softmax of the next is
// taken, and the warpgroups take turns, so that one multiplies while the other does not.
#pragma once
#define TILE (DEPTH > 128 ? 64 : 128)  // positions
#include "attend_fill.cuh"
#include "wgmma.cuh"

#define WARPGROUPS 2  // that multiply
#define THREADS (WARPGROUPS * 128 + FILLERS * 32)

// Of those that a block's threads have, 168 each: a filler's, and what that leaves the others.
#define FILLER_REGISTERS 56
#define MULTIPLIER_REGISTERS ((3 * 168 - FILLER_REGISTERS) / 2)

// Barriers by number; 0 is the whole block's.
#define TURN_OF(warpgroup) (1 + (warpgroup))
#define MEETING_OF(warpgroup) (1 + WARPGROUPS + (warpgroup))

// `a` [64, 16] stands in registers behind the accumulators, then B's place, whose depths are its rows.
#define BS_WGMMA_HELD(shape, text, rows_at, b_at, ...)                                                    \
    asm volatile("wgmma.mma_async.sync.aligned." shape ".f32.bf16.bf16 {" text "}, {" rows_at "}, " b_at \
                 ", 1, 1, 1, 1;\n"                                                                       \
                 : __VA_ARGS__                                                                           \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns))

static __device__ __forceinline__ void add_held(float (&d)[32], const u32 (&a)[4], u64 columns) {
    BS_WGMMA_HELD("m64n64k16", BS_TEXT_0_31, "%32,%33,%34,%35", "%36", BS_D32(0));
}
static __device__ __forceinline__ void add_held(float (&d)[64], const u32 (&a)[4], u64 columns) {
    BS_WGMMA_HELD("m64n128k16", BS_TEXT_0_31 "," BS_TEXT_32_63, "%64,%65,%66,%67", "%68", BS_D32(0), BS_D32(32));
}
static __device__ __forceinline__ void add_held(float (&d)[128], const u32 (&a)[4], u64 columns) {
    BS_WGMMA_HELD("m64n256k16", BS_TEXT_0_31 "," BS_TEXT_32_63 "," BS_TEXT_64_79 "," BS_TEXT_80_127,
                  "%128,%129,%130,%131", "%132", BS_D32(0), BS_D32(32), BS_D32(64), BS_D32(96));
}

// Of rows that are depths: blocks of 64 columns follow each other, and eight rows 1,024 bytes on.
static __device__ __forceinline__ u64 turned_tile(u32 address) {
    return (u64)(address >> 4 & 0x3fff) | (u64)(BLOCK_BYTES >> 4) << 16 | 64ull << 32 | 1ull << 62;
}

// Barriers of some warps.
static __device__ __forceinline__ void meet(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
static __device__ __forceinline__ void let_pass(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// A warpgroup that multiplies.
template <int D>
struct Multiplier {
    static constexpr int QUERY_BLOCK = 64 * 128;   // bytes of 64 values of a warpgroup's queries
    static constexpr bool READS_AHEAD = D <= 128;  // there is room for the next item's queries
    const Attention<bf16> &a;
    const Memory<D> &memory;
    int warpgroup;
    int done;  // tiles so far

    __device__ __forceinline__ void wait(int slot, int tile) const {
        barrier_wait(memory.full + slot, memory.parity_of(tile));
    }
    __device__ __forceinline__ void release(int slot) const {
        if (threadIdx.x % 32 == 0) barrier_arrive(memory.empty + slot);
    }
    __device__ __forceinline__ void wait_turn() const { meet(TURN_OF(warpgroup), 256); }
    __device__ __forceinline__ void give_turn() const { let_pass(TURN_OF((warpgroup + 1) % WARPGROUPS), 256); }

    // --- queries ---

    // A lane's fours of the queries of 16 rows: the row, and where in it.
    template <class F>
    static __device__ __forceinline__ void each_four(F f) {
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            int at = i * 32 + threadIdx.x % 32;
            f(i, threadIdx.x % 128 / 32 * 16 + at / (D / 4), at % (D / 4) * 4);
        }
    }
    __device__ __forceinline__ const float *query(const Item &item, int row, int d) const {
        return a.q + ((i64)(item.first + warpgroup * 64 + row) * a.heads + item.head) * D + d;
    }
    __device__ __forceinline__ void fetch_queries(const Item &item, int rows) const {
        each_four([&](int i, int row, int d) {
            if (item.first + warpgroup * 64 + row < rows) copy_16(memory.own(i), query(item, row, d));
        });
        copies_end();
    }
    __device__ __forceinline__ Pack<4> fetched(int i) const {
        Pack<4> q;
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(q.at[0]), "=f"(q.at[1]), "=f"(q.at[2]), "=f"(q.at[3])
                     : "r"(memory.own(i))
                     : "memory");
        return q;
    }
    // Times the scale, so that products with keys are scores in units of log2.
    __device__ __forceinline__ void lay_queries(const Item &item, int rows) const {
        u32 base = memory.queries(warpgroup);
        float by = a.scale * LOG2_E;
        copies_wait<0>();
        meet(MEETING_OF(warpgroup), 128);
        each_four([&](int i, int row, int d) {
            Pack<4> q = {};
            if (item.first + warpgroup * 64 + row < rows) {
                if constexpr (READS_AHEAD) q = fetched(i);
                else q = load<4>(query(item, row, d));
            }
            u32 to = base + d / 64 * QUERY_BLOCK + row * 128 + (d % 64 / 8 ^ row % 8) * 16 + d % 8 * 2;
            asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(pack_bf16(q.at[0] * by, q.at[1] * by)),
                         "r"(pack_bf16(q.at[2] * by, q.at[3] * by))
                         : "memory");
        });
        copies_are_seen();
        meet(MEETING_OF(warpgroup), 128);
    }

    // --- products ---

    __device__ __forceinline__ void multiply_keys(u32 keys, float (&score)[TILE / 2]) const {
        u32 queries = memory.queries(warpgroup);
        wgmma_begin();
#pragma unroll
        for (int s = 0; s < D / 16; s++)
            wgmma<TILE>(score, wgmma_tile(queries + s / 4 * QUERY_BLOCK + s % 4 * 32),
                        wgmma_tile(keys + s / 4 * BLOCK_BYTES + s % 4 * 32), s > 0);
        wgmma_commit();
    }
    __device__ __forceinline__ void add_values(const u32 (&weights)[TILE / 16][4], u32 values, Outputs<D> &out) const {
        wgmma_begin();
#pragma unroll
        for (int s = 0; s < TILE / 16; s++) add_held(out.acc, weights[s], turned_tile(values + s * 16 * 128));
        wgmma_commit();
    }

    // --- softmax ---

    __device__ __forceinline__ void weigh(const RowPair &pair, int at, float (&score)[TILE / 2], Outputs<D> &out,
                                          float (&by)[2]) const {
        cap_scores(a.softcap, score);
        mask_scores(pair, at, score);
        soften(score, out, by);
    }
    // Never waits. Without it the compiler has the softmax wait for the products that it is to overlap.
    static __device__ __forceinline__ void stay_ahead(const Outputs<D> &out) {
        if (__any_sync(BS_FULL, fminf(out.sum[0], out.sum[1]) < 0.0f)) asm volatile("nanosleep.u32 1;");
    }
    static __device__ __forceinline__ void code(const float (&score)[TILE / 2], u32 (&weights)[TILE / 16][4]) {
#pragma unroll
        for (int s = 0; s < TILE / 16; s++) code_weights(score + 8 * s, weights[s]);
    }

    // --- items ---

    // All tiles of an item. Calls `ahead` when the last scores have been weighed.
    template <class F>
    __device__ __forceinline__ void walk(const Item &item, const RowPair &pair, Outputs<D> &out, F ahead) {
        float score[TILE / 2], by[2];
        u32 weights[TILE / 16][4];
        wait(memory.keys_of(done), done);
        wait_turn();
        multiply_keys(memory.slot(memory.keys_of(done)), score);
        give_turn();
        wgmma_wait<0>(score);
        release(memory.keys_of(done));
        weigh(pair, item.from, score, out, by);
        code(score, weights);
        for (int i = 1; i < item.tiles; i++) {
            int values = memory.values_of(done), keys = memory.keys_of(done + 1);
            wait(keys, done + 1);
            wait_turn();
            multiply_keys(memory.slot(keys), score);
            wait(values, done);
            add_values(weights, memory.slot(values), out);
            give_turn();
            wgmma_wait<1>(score);
            release(keys);
            weigh(pair, item.from + i * TILE, score, out, by);
            stay_ahead(out);
            wgmma_wait<0>(out.acc);
            release(values);
            shrink(out, by);
            code(score, weights);
            done++;
        }
        ahead();
        wait(memory.values_of(done), done);
        add_values(weights, memory.slot(memory.values_of(done)), out);
        wgmma_wait<0>(out.acc);
        release(memory.values_of(done));
        done++;
    }

    // The next item, and what can be brought of it.
    __device__ __forceinline__ bool start(Items &items, Item &item, RowPair &pair) const {
        if (!items.next(item)) return false;
        if (READS_AHEAD) fetch_queries(item, items.rows);
        pair = rows_of_thread(a, item.first, items.rows);
        return true;
    }
    __device__ __forceinline__ void run(int rows) {
        Items items = {a, rows, 0};
        Item item;
        RowPair pair;
        if (warpgroup == WARPGROUPS - 1) give_turn();
        for (bool more = start(items, item, pair); more;) {
            Item now = item;
            RowPair seen = pair;
            Outputs<D> out = {};
            out.top[0] = out.top[1] = -BS_INFINITY;
            lay_queries(now, rows);
            auto ahead = [&] { more = start(items, item, pair); };
            if (now.tiles) walk(now, seen, out, ahead);
            else ahead();
            finish_rows(a, now.head, seen, out);
        }
    }
};

template <int D>
static __device__ __forceinline__ void attend_many(const Attention<bf16> &a, const Tables &tables, int rows) {
    extern __shared__ float4 dynamic[];
    __shared__ u64 full[SLOTS], empty[SLOTS];
    Memory<D> memory = {(shared_address(dynamic) + 1023) / 1024 * 1024, full, empty};
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, MULTIPLIERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int warp = (int)threadIdx.x / 32;
    if (warp >= MULTIPLIERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(FILLER_REGISTERS));
        Filler<D>{a, tables, memory, warp - MULTIPLIERS}.run(rows);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(MULTIPLIER_REGISTERS));
        Multiplier<D>{a, memory, warp / 4, 0}.run(rows);
    }
}
