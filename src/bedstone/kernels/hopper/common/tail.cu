// What a layer does behind its attention, for one row, in one launch: the product of what was attended, its sum
// with the row and the norm of that, the gated unit, its product; and then the next layer's sum, norm, and products.
//
// Every block makes a share of each product's outputs and waits for the others' before the next. Meanwhile weights
// keep coming: some warps send for those of all products, one after the other. All products go by the same code,
// which so stays near: what is executed for the first time comes from memory too. What is made of a row has the bits
// that launches apart give.
#include "act.cuh"
#include "meeting.cuh"
#include "pack.cuh"
#include "tail_row.cuh"

#define ROUND 16 // turns whose sums stand in shared memory
#define SUMS (ROUND * GROUP * SPLIT)
#define SHARED_BYTES (217 * 1024)

struct norm_of {
    const float *w;
    float eps;
    int plus_one;
};

struct tail {
    const float *attended, *x;
    norm_of behind, before;
    float *sum, *o, *h, *d; // where x and all that is added comes to lie; what the first three products make
    cache_t *table;
    const int *slot;
    int width, act;
};

static __device__ __forceinline__ float added(const float *sums) {
    float sum = sums[0];
#pragma unroll
    for (int m = 1; m < SPLIT; ++m) sum += sums[m];
    return sum;
}

static __device__ __forceinline__ void put(const tail &t, const product &j, int output, float value) {
    int part = j.part_of(output);
    if (j.y[part]) {
        j.y[part][output] = value;
    } else if (int slot = *t.slot; slot >= 0) {
        t.table[(i64)slot * j.n[part] + output] = from_f32<cache_t>(value);
    }
}

// Outputs of which all sums are there, from a block's `first` on.
static __device__ __forceinline__ void put_round(const tail &t, const product &j, const dealt &s, const float *sums, int first) {
    int count = min(s.outputs - first, (ROUND >> j.gated) * GROUP);
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const float *made = sums + (i << j.gated) * SPLIT;
        float value = added(made);
        if (j.gated) value = gated(value, added(made + SPLIT), t.act);
        put(t, j, s.first + first + i, value);
    }
}

// One turn's tiles, `step` from one to the next: this warp's share of sixteen outputs.
static __device__ __forceinline__ float multiply_turn(const coded_rows &x, ring &from, int pieces, int step) {
    place p;
    int member = threadIdx.x / 32 % SPLIT;
    float sum[1][2] = {};
#pragma unroll 1
    for (int span = member; pieces; --pieces, span += SPLIT) {
        from.wait_full();
        if (span < x.spans) {
            const u8 *tile = from.tile(), *low = tile + p.g * from.pitch + member * SPAN_BYTES, *high = low + 8 * from.pitch;
            if (!from.exact) low += tile[GROUP * from.pitch + p.g], high += tile[GROUP * from.pitch + p.g + 8];
            tail_spans<format>::add<1>(sum, low, high, x.at(span));
        }
        from.done();
        from.move(step);
    }
    return over_lanes(p, sum[0]);
}

// A team's first tile of a pair of turns is its own number of tiles behind the first.
static __device__ __forceinline__ void multiply(const tail &t, const product &j, const coded_rows &x, ring &from, float *sums) {
    dealt s(j);
    place p;
    int team = threadIdx.x / 32 / SPLIT, member = threadIdx.x / 32 % SPLIT;
#pragma unroll 1
    for (int pair = 0; pair < s.turns; pair += TEAMS) {
        int turn = pair + team, next = pair + TEAMS;
        if (turn < s.turns) {
            float whole = multiply_turn(x, from, s.pieces, min(TEAMS, s.turns - pair));
            int local = (turn % ROUND >> j.gated) * GROUP + p.g + 8 * p.t;
            if (p.t < 2) sums[((local << j.gated) + (turn & j.gated)) * SPLIT + member] = whole;
        } else {
            from.move(s.pieces);
        }
        if (next % ROUND && next < s.turns) continue;
        sync_block();
        put_round(t, j, s, sums, (pair / ROUND * ROUND >> j.gated) * GROUP);
        sync_block();
    }
}

// The products in turn, each of what the one before has left.
static __device__ __forceinline__ void multiply_all(const tail &t, const product *plan, ring from, const row_room &mine, float *sums) {
    meeting all;
    from.at = threadIdx.x / 32 / SPLIT;
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
        const product &j = plan[i];
        coded_rows x{mine.codes, (j.k + SPAN - 1) / SPAN, j.k, 0};
        if (i == 0) {
            after_previous();
            if (threadIdx.x == 0) all.begin(3);
            bring(mine.row, t.x, t.width);
        } else {
            fetched();
            if (threadIdx.x == 0) {
                *(volatile u32 *)&held = 1;
                all.meet();
                *(volatile u32 *)&held = 0;
            }
            sync_block();
        }
        const float *given = i ? t.h : t.attended;
        scaling how{nullptr, 0, i == 1 ? t.behind.plus_one : t.before.plus_one};
        if (i % 2) {
            float squares = add_row(mine.row, i == 1 ? t.o : t.d, t.width);
            how.by = 1.0f / sqrtf(squares / (float)t.width + (i == 1 ? t.behind.eps : t.before.eps));
            how.w = mine.weights, given = mine.row;
            if (i == 3) give_share(mine.row, t.sum, t.width);
        }
        code_row(x, given, how);
        if (i == 1) bring(mine.weights, t.before.w, t.width);
        multiply(t, j, x, from, sums);
    }
}

static __device__ __forceinline__ void run(const tail &t, const product *plan) {
    extern __shared__ __align__(128) u8 memory[];
    __shared__ u64 barriers[2 * MOST_STAGES];
    __shared__ __align__(16) float sums[SUMS];
    before_next();
    u64 starts = 0;
    int longest = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        starts |= (u64)plan[i].w[0] | (u64)plan[i].w[1] | (u64)plan[i].w[2] | (u64)format::bytes(plan[i].k);
        longest = max(longest, plan[i].k);
    }
    float *row = (float *)(memory + (longest + SPAN - 1) / SPAN * coded_rows::EACH), *weights = row + t.width;
    u8 *room = (u8 *)(weights + t.width);
    ring tiles(room, SHARED_BYTES - (u32)(room - memory), barriers, (starts & 15) == 0);
    if (threadIdx.x == 0) held = 0, tiles.begin();
    __syncthreads();
    if (threadIdx.x >= THREADS) {
#pragma unroll 1
        for (int i = 0; i < 4; ++i) fetch_product(plan[i], tiles);
        return;
    }
    bring(weights, t.behind.w, t.width);
    multiply_all(t, plan, tiles, {memory, row, weights}, sums);
}

BS_KERNEL(THREADS + 32 * FETCHERS, 1) BS_ENTRY(tail_parts3_, _rows)(
    const float *attended, const u8 *wo, const float *x, const float *w_post, const u8 *wg, const u8 *wu, const u8 *wd,
    const float *w_in, const u8 *w0, const u8 *w1, const u8 *w2, float *sum, float *y0, float *y1, cache_t *table,
    const int *slot, float *o, float *h, float *d, int inner, int width, int ff, int n0, int n1, int n2, int act, float eps_post,
    int plus_one_post, float eps, int plus_one) {
    __shared__ product plan[4];
    if (threadIdx.x == 0) {
        plan[0] = {{wo}, {o}, {width}, inner, 0};
        plan[1] = {{wg, wu}, {h}, {ff}, width, 1};
        plan[2] = {{wd}, {d}, {width}, ff, 0};
        plan[3] = {{w0, w1, w2}, {y0, y1}, {n0, n1, n2}, width, 0};
    }
    __syncthreads();
    run({attended, x, {w_post, eps_post, plus_one_post}, {w_in, eps, plus_one}, sum, o, h, d, table, slot, width, act}, plan);
}
