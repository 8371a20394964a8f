// What a layer does behind its attention, for one row, in one launch: the product of what was attended, its sum
// with the row and the norm of that, the gated unit, its product; and then the next layer's sum, norm, and products.
//
// Every block makes a share of each product's outputs, codes what is multiplied next, and tells the others. A norm's
// weights are in what is coded, its factor is that of the product's outputs. Meanwhile weights keep coming: some warps
// send for those of all products, one after the other. All products go by the same code, which so stays near: what is
// executed for the first time comes from memory too.
#include "act.cuh"
#include "pack.cuh"
#include "tail_job.cuh"
#include "tail_row.cuh"

#define ROUND 16 // turns whose sums stand in shared memory
#define SUMS (ROUND * GROUP * SPLIT)
#define SHARED_BYTES (217 * 1024)
#define MOST_WIDTH 16384
#define MOST_FF 65536

// What blocks tell of a product's outputs: nobody but a module's launches writes it.
static __device__ uint4 told_o[MOST_WIDTH / LOT * LOT_WORDS], told_h[MOST_FF / LOT * LOT_WORDS], told_d[MOST_WIDTH / LOT * LOT_WORDS];

// A block's own outputs of the row, and of the norms' weights.
struct own_row {
    float *kept, *behind, *before;
};

static __device__ __forceinline__ float added(const float *sums) {
    float sum = 0;
#pragma unroll
    for (int m = 0; m < SPLIT / 4; ++m) {
        const float4 some = ((const float4 *)sums)[m];
        sum = (((sum + some.x) + some.y) + some.z) + some.w;
    }
    return sum;
}

// Adds an output to the row, whose norm is multiplied next.
static __device__ __forceinline__ void tell_sum(const tail &t, const own_row &own, bool back, int mine, int output, float value,
                                                uint4 *to, u32 launch) {
    float sum = __fadd_rn(own.kept[mine], value);
    if (!back) own.kept[mine] = sum;
    else if (t.sum) t.sum[output] = sum;
    tell_lot(to, back ? t.before.weighted(sum, own.before[mine]) : t.behind.weighted(sum, own.behind[mine]), warp_sum(sum * sum), launch);
}

// Outputs of which all sums are there, from a block's `first` on; `by` is the factor of what was multiplied.
static __device__ __forceinline__ void put_round(const tail &t, const product &j, int which, const dealt &s, const own_row &own,
                                                 const float *sums, int first, float by, u32 launch) {
    int count = min(s.outputs - first, (ROUND >> j.gated) * GROUP);
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const float *made = sums + (i << j.gated) * SPLIT;
        int mine = first + i, output = s.first + mine;
        uint4 *to = j.told + output / LOT * LOT_WORDS;
        float value = __fmul_rn(by, added(made));
        if (which == GATED) tell_lot(to, gated(value, __fmul_rn(by, added(made + SPLIT)), t.act), 0, launch);
        else if (which == NEXT) put(t, j, output, value);
        else tell_sum(t, own, which == BACK, mine, output, value, to, launch);
    }
}

// What a warp has of every tile, and a lane of it.
struct warp_share {
    tail_spans<format> spans;
    int member, g, row, leads;

    __device__ __forceinline__ explicit warp_share(const ring &from) {
        member = threadIdx.x / 32 % SPLIT, g = threadIdx.x % 32 / 4, leads = threadIdx.x % 32 == 0;
        row = g * from.pitch + member * SPAN_BYTES;
        settle(member), settle(g), settle(row), settle(leads);
    }
};

// One turn's tiles, `step` from one to the next: this warp's share of sixteen outputs.
static __device__ __forceinline__ float multiply_turn(const coded_rows &x, const warp_share &my, ring &from, int pieces, int step) {
    float sum[2] = {};
#pragma unroll 1
    for (int span = my.member; pieces; --pieces, span += SPLIT) {
        from.wait_full();
        if (span < x.spans) {
            const u8 *tile = from.tile(), *low = tile + my.row, *high = low + 8 * from.pitch;
            if (!from.exact) low += tile[GROUP * from.pitch + my.g], high += tile[GROUP * from.pitch + my.g + 8];
            my.spans.add(sum, low, high, x.at(span));
        }
        from.done(my.leads);
        from.move(step);
    }
    return over_lanes(place(), sum);
}

// A team's first tile of a pair of turns is its own number of tiles behind the first. `give(first)` takes the block's
// outputs from there on.
template <class Give>
static __device__ __forceinline__ void multiply(const dealt &s, int gated, const coded_rows &x, const warp_share &my, ring &from,
                                                float *sums, Give give) {
    int team = threadIdx.x / 32 / SPLIT, t = threadIdx.x % 4;
#pragma unroll 1
    for (int pair = 0; pair < s.turns; pair += TEAMS) {
        int turn = pair + team, next = pair + TEAMS, active = min(TEAMS, s.turns - pair);
        if (turn < s.turns) {
            float whole = multiply_turn(x, my, from, s.pieces, active);
            int local = (turn % ROUND >> gated) * GROUP + my.g + 8 * t;
            if (t < 2) sums[((local << gated) + (turn & gated)) * SPLIT + my.member] = whole;
        } else {
            from.move(s.pieces * active);
        }
        if (next % ROUND && next < s.turns) continue;
        sync_block();
        give((pair / ROUND * ROUND >> gated) * GROUP);
        if (next < s.turns) sync_block();
    }
}

// What is multiplied first, the block's own of the row, and which launch this is. A block without outputs has no
// part in it: others may write over what was attended before it comes to that.
static __device__ __forceinline__ u32 begin_row(const tail &t, const dealt &s, const told_row &x, const own_row &own) {
    __shared__ u32 launch;
    after_previous();
    if (threadIdx.x == 0) launch = mark_of(launches_before());
    bring(own.kept, t.x + s.first, s.outputs);
    if (s.outputs) x.code(t.attended);
    fetched();
    sync_block();
    return launch;
}

// The products in turn, each of what the one before has left.
static __device__ __forceinline__ void multiply_all(const tail &t, const product *plan, ring from, told_row row,
                                                    const own_row &own, float *sums) {
    warp_share my(from);
    u32 launch = 0;
    from.at = threadIdx.x / 32 / SPLIT;
#pragma unroll 1
    for (int which = 0; which < PRODUCTS; ++which) {
        const product &j = plan[which];
        dealt s(j);
        row.codes.k = j.k, row.codes.spans = (j.k + SPAN - 1) / SPAN;
        if (which == PROJECTED) {
            launch = begin_row(t, s, row, own);
        } else {
            if (threadIdx.x == 0) *(volatile u32 *)&held = 1;
            row.receive(plan[which - 1].told, launch);
            sync_block();
            if (threadIdx.x == 0) *(volatile u32 *)&held = 0;
        }
        float by = 1;
        if (which % 2) by = (which == GATED ? t.behind : t.before).factor(row.all_squares(), t.width);
        multiply(s, j.gated, row.codes, my, from, sums, [&](int first) {
            put_round(t, j, which, s, own, sums, first, by, launch);
        });
    }
    if (threadIdx.x == 0) count_start();
}

// The longest row that is multiplied, in whole spans.
static __device__ __forceinline__ int longest_of(const product *plan) {
    int longest = 0;
#pragma unroll
    for (int i = 0; i < PRODUCTS; ++i) longest = max(longest, plan[i].k);
    return (longest + SPAN - 1) / SPAN * SPAN;
}

// Whether all rows of weights begin on 16 bytes.
static __device__ __forceinline__ bool whole_rows(const product *plan) {
    u64 starts = 0;
#pragma unroll
    for (int i = 0; i < PRODUCTS; ++i)
        starts |= (u64)plan[i].w[0] | (u64)plan[i].w[1] | (u64)plan[i].w[2] | (u64)format::bytes(plan[i].k);
    return (starts & 15) == 0;
}

static __device__ __forceinline__ void run(const tail &t, const product *plan) {
    extern __shared__ __align__(128) u8 memory[];
    __shared__ u64 barriers[2 * MOST_STAGES];
    __shared__ __align__(16) float sums[SUMS];
    before_next();
    dealt s(plan[BACK]);
    int longest = longest_of(plan), most = (t.width / LOT + (int)gridDim.x - 1) / (int)gridDim.x * LOT;
    told_row row{{memory}, (float *)(memory + longest / SPAN * coded_rows::EACH)};
    own_row own{row.squares + longest / LOT};
    own.behind = own.kept + most, own.before = own.behind + most;
    u8 *room = (u8 *)(own.before + most);
    ring tiles(room, SHARED_BYTES - (u32)(room - memory), barriers, whole_rows(plan));
    if (threadIdx.x == 0) held = 0, tiles.begin();
    __syncthreads();
    if (threadIdx.x >= THREADS) {
#pragma unroll 1
        for (int i = 0; i < PRODUCTS; ++i) fetch_product(plan[i], tiles);
        return;
    }
    bring(own.behind, t.behind.w + s.first, s.outputs);
    bring(own.before, t.before.w + s.first, s.outputs);
    multiply_all(t, plan, tiles, row, own, sums);
}

static __device__ __forceinline__ void run_with(const tail &t, const u8 *wo, const u8 *wg, const u8 *wu, const u8 *wd, int inner,
                                                int ff, const product &next) {
    __shared__ product plan[PRODUCTS];
    if (threadIdx.x == 0) {
        plan[PROJECTED] = {{wo}, {}, {t.width}, inner, 0, told_o};
        plan[GATED] = {{wg, wu}, {}, {ff}, t.width, 1, told_h};
        plan[BACK] = {{wd}, {}, {t.width}, ff, 0, told_d};
        plan[NEXT] = next;
    }
    __syncthreads();
    run(t, plan);
}

#include "tail_entries.cuh"
