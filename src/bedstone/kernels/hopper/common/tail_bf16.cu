// What a layer of bfloat16 weights does behind its attention, for one row, in one launch: the product of what was
// attended, its sum with the row and the norm of that, the gated unit, its product; and then the next layer's sum,
// norm, and products.
//
// Blocks make shares of each product's outputs and tell each other. A norm's weights are in what is multiplied, its
// factor is that of the product's outputs. Meanwhile weights keep coming, of all products one after the other.
// Matrix units multiply them, sixteen rows by sixteen values an instruction, by activations as three terms (terms.cuh).
#include "act.cuh"
#include "copies.cuh"
#include "mma.cuh"
#include "pack.cuh"
#include "tail_rows.cuh"
#include "told_floats.cuh"

#define SHARED_BYTES (217 * 1024)
#define FOURS 6 // that a thread waits for at once

// What is multiplied by a product, of a norm of it; without weights, of none.
static __device__ __forceinline__ norm_of norm_before(const tail &t, int which) {
    bool first = which == GATED, second = which == NEXT;
    return {first ? t.behind.w : second ? t.before.w : nullptr, first ? t.behind.eps : t.before.eps,
            first ? t.behind.plus_one : t.before.plus_one};
}

// What a block has in shared memory beside its tiles.
struct workplace {
    term_row terms;
    float *weights, *kept; // of the next norm; the block's own of the row
    float *sums;           // [WARPS][MOST_ROWS]
    float *squares;        // of each warp's values
    int half;              // of what blocks tell: this launch's, in floats from the first
};

static __device__ __forceinline__ float *told_of(const workplace &at, const product &j) { return (float *)j.told + at.half; }

// --- results ---------------------------------------------------------------------------------

static __device__ __forceinline__ float added(const float *sums) {
    float sum = sums[0];
#pragma unroll
    for (int m = 1; m < WARPS; ++m) sum += sums[m * MOST_ROWS];
    return sum;
}

// What a norm's values have in common; where there is none, 1.
static __device__ __forceinline__ float factor_of(const tail &t, const workplace &at, int which) {
    norm_of norm = norm_before(t, which);
    if (!norm.w) return 1;
    float all = 0;
#pragma unroll
    for (int i = 0; i < WARPS; ++i) all += at.squares[i];
    return norm.factor(all, t.width);
}

// Outputs whose rows' sums are there, of rows from `first` to `end` of the block's.
static __device__ __forceinline__ void put_rows(const tail &t, const planned &p, int which, const workplace &at, int first, int end) {
    const product &j = p.of;
    float by = factor_of(t, at, which);
#pragma unroll 1
    for (int row = first + (threadIdx.x << j.gated); row < end; row += THREADS << j.gated) {
        const float *made = at.sums + row - first;
        int mine = row >> j.gated, output = p.mine.first + mine;
        float value = added(made) * by;
        if (which == NEXT) {
            put(t, j, output, value);
            continue;
        }
        if (which == GATED) value = gated(value, added(made + 1) * by, t.act);
        else value = at.kept[mine] = __fadd_rn(at.kept[mine], value);
        if (which == BACK && t.sum) t.sum[output] = value;
        tell(told_of(at, j) + output, value);
    }
}

// --- products --------------------------------------------------------------------------------

static __device__ __forceinline__ void load_matrices(u32 (&a)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(at)
                 : "memory");
}

// What a lane multiplies: from where its row of a tile begins, and its terms of the warp's next step. Lanes beyond the
// columns of terms have zeros.
struct lane_share {
    u32 row, terms;
    int mine;
    u32 x[4] = {};

    __device__ __forceinline__ lane_share(u32 pitch, int rows, const term_row &of) {
        int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        row = min(lane % GROUP, rows - 1) * pitch + lane / GROUP * 16;
        terms = shared_address(of.memory) + threadIdx.x / 32 * STEP_BYTES + g * 2 * STEP + t * 16;
        mine = g < TERMS;
    }
    __device__ __forceinline__ void load_terms() {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "setp.ne.u32 p, %5, 0;\n"
            "@p ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
            "}\n"
            : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])
            : "r"(terms), "r"(mine)
            : "memory");
        terms += WARPS * STEP_BYTES;
    }
};

// This warp's steps of a tile.
static __device__ __forceinline__ void multiply_tile(float (&sum)[2][4], lane_share &own, u32 tile, int bytes) {
    u32 at = tile + own.row + threadIdx.x / 32 * 2 * STEP;
#pragma unroll 2
    for (int left = bytes - threadIdx.x / 32 * 2 * STEP; left > 0; left -= LAP_BYTES, at += LAP_BYTES) {
        u32 a[2][4];
        load_matrices(a[0], at);
        load_matrices(a[1], at + STEP);
        own.load_terms();
        mma_16x8x16(sum[0], a[0], own.x[0], own.x[1]);
        mma_16x8x16(sum[1], a[1], own.x[2], own.x[3]);
    }
}

// The columns of terms put together, the smallest first, of this warp's rows.
static __device__ __forceinline__ void leave_sums(const float (&sum)[2][4], float *to, int rows) {
    int lane = threadIdx.x % 32, g = lane / 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float first = sum[0][2 * i] + sum[1][2 * i], second = sum[0][2 * i + 1] + sum[1][2 * i + 1];
        float third = __shfl_down_sync(BS_FULL, first, 1);
        if (lane % 4 == 0 && g + 8 * i < rows) to[g + 8 * i] = first + (second + third);
    }
}

static __device__ __forceinline__ void multiply(const tail &t, const planned &p, int which, const workplace &at, ring &from) {
    const dealt s = p.mine;
#pragma unroll 1
    for (int first = 0, begun = 0; first < s.rows; first += s.height) {
        int rows = s.group_rows(first);
        lane_share own(s.pitch(), rows, at.terms);
        float sum[2][4] = {};
#pragma unroll 1
        for (u32 offset = 0; offset < s.row_bytes; offset += s.piece) {
            from.wait_full();
            multiply_tile(sum, own, from.tile_at(), (int)min(s.piece, s.row_bytes - offset));
            from.done();
        }
        leave_sums(sum, at.sums + threadIdx.x / 32 * MOST_ROWS + first - begun, rows);
        int next = first + s.height;
        if (next < s.rows && next + s.height - begun <= MOST_ROWS) continue;
        sync_block();
        put_rows(t, p, which, at, begun, min(next, s.rows));
        begun = next;
        if (next < s.rows) sync_block();
    }
}

// --- activations -----------------------------------------------------------------------------

static __device__ __forceinline__ float4 load_four(const float *x, bool whole) {
    if (whole) return __ldcg((const float4 *)x);
    return make_float4(__ldcg(x), __ldcg(x + 1), __ldcg(x + 2), __ldcg(x + 3));
}

// What was attended, wherever it lies.
static __device__ __forceinline__ void take_attended(const term_row &to, const float *x, int k) {
    bool whole = ((u64)x & 15) == 0;
#pragma unroll 1
    for (int first = 4 * threadIdx.x; first < k; first += FOURS * 4 * THREADS) {
        float4 v[FOURS];
#pragma unroll
        for (int i = 0; i < FOURS; ++i)
            if (int at = first + i * 4 * THREADS; at < k) v[i] = load_four(x + at, whole);
#pragma unroll
        for (int i = 0; i < FOURS; ++i)
            if (int at = first + i * 4 * THREADS; at < k) to.put_four(at, v[i]);
    }
}

// What blocks tell: times weights where there are such, their squares being added up.
static __device__ __forceinline__ void take_told(const workplace &at, const float *told, int k, const norm_of &norm) {
    float squares = 0;
#pragma unroll 1
    for (int first = 4 * threadIdx.x; first < k; first += FOURS * 4 * THREADS) {
        float4 v[FOURS];
        await_fours(v, told, first, 4 * THREADS, k);
#pragma unroll
        for (int i = 0; i < FOURS; ++i) {
            int to = first + i * 4 * THREADS;
            if (to >= k) break;
            if (norm.w) {
                float4 w = *(const float4 *)(at.weights + to), x = v[i];
                squares = fmaf(x.w, x.w, fmaf(x.z, x.z, fmaf(x.y, x.y, fmaf(x.x, x.x, squares))));
                v[i] = make_float4(norm.weighted(x.x, w.x), norm.weighted(x.y, w.y), norm.weighted(x.z, w.z), norm.weighted(x.w, w.w));
            }
            at.terms.put_four(to, v[i]);
        }
    }
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) at.squares[threadIdx.x / 32] = squares;
}

// Weights to shared memory behind the threads' backs, until `fetched`.
static __device__ __forceinline__ void bring(float *to, const float *from, int width) {
    for (int i = 4 * threadIdx.x; i < width; i += 4 * THREADS) copy_16(shared_address(to + i), from + i);
}

// --- the launch ------------------------------------------------------------------------------

static __device__ __forceinline__ void copy_4(u32 to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from));
}

// What is multiplied first, and the block's own of the row.
static __device__ __forceinline__ void begin_row(const tail &t, const planned &p, const workplace &at, u64 &launch) {
    after_previous();
    for (int i = threadIdx.x; i < p.mine.outputs; i += THREADS) copy_4(shared_address(at.kept + i), t.x + p.mine.first + i);
    if (threadIdx.x == 0) launch = launches_before();
    take_attended(at.terms, t.attended, p.of.k);
}

// The products in turn, each of what the one before has left. Who tells has read all of its own that results may lie
// over, and results are written behind what all have told.
static __device__ __forceinline__ void multiply_all(const tail &t, const planned *plan, workplace at, ring from) {
    __shared__ u64 launch;
#pragma unroll 1
    for (int which = 0; which < PRODUCTS; ++which) {
        const planned &p = plan[which];
        if (which == PROJECTED) begin_row(t, p, at, launch);
        else take_told(at, told_of(at, plan[which - 1].of), p.of.k, norm_before(t, which));
        fetched();
        sync_block();
        if (which == PROJECTED) at.half = (int)(launch % 2) * TOLD_VALUES;
        if (which == GATED) bring(at.weights, t.before.w, t.width);
        multiply(t, p, which, at, from);
        if (which == PROJECTED) clear_told(told_values[(launch + 1) % 2], THREADS);
    }
    if (threadIdx.x == 0) count_start();
}

static __device__ __forceinline__ void run(const tail &t, const planned *plan) {
    extern __shared__ __align__(128) u8 memory[];
    __shared__ u64 barriers[2 * MOST_STAGES];
    __shared__ float sums[WARPS * MOST_ROWS], squares[WARPS];
    int longest = 0;
#pragma unroll
    for (int i = 0; i < PRODUCTS; ++i) longest = max(longest, plan[i].of.k);
    float *weights = (float *)(memory + longest / STEP * STEP_BYTES), *kept = weights + t.width;
    u8 *room = (u8 *)(kept + (plan[PROJECTED].mine.outputs + 3) / 4 * 4);
    ring tiles(room, SHARED_BYTES - (u32)(room - memory), barriers);
    if (threadIdx.x == 0) tiles.begin();
    __syncthreads();
    if (threadIdx.x >= THREADS) {
#pragma unroll 1
        for (int i = 0; i < PRODUCTS; ++i) fetch_product(plan[i], tiles);
        return;
    }
    bring(weights, t.behind.w, t.width);
    multiply_all(t, plan, {{memory}, weights, kept, sums, squares, 0}, tiles);
}

static __device__ __forceinline__ void run_with(const tail &t, const u8 *wo, const u8 *wg, const u8 *wu, const u8 *wd, int inner,
                                                int ff, const product &next) {
    __shared__ planned plan[PRODUCTS];
    before_next();
    float *told = told_values[0];
    if (threadIdx.x == 0) {
        plan[PROJECTED].of = {{wo}, {}, {t.width}, inner, 0, (uint4 *)told};
        plan[GATED].of = {{wg, wu}, {}, {ff}, t.width, 1, (uint4 *)(told + 2 * MOST_WIDTH)};
        plan[BACK].of = {{wd}, {}, {t.width}, ff, 0, (uint4 *)(told + MOST_WIDTH)};
        plan[NEXT].of = next;
    }
    __syncthreads();
    if (threadIdx.x < PRODUCTS) plan[threadIdx.x].mine.deal(plan[threadIdx.x].of);
    __syncthreads();
    run(t, plan);
}

#include "tail_entries.cuh"
