// Products of some rows (a batch of sequences), which take the time that their weights take to arrive.
//
// Weights are the rows of the matrix instruction, activations its columns. A pass is eight slots of
// weights: four pairs of warps take two slots each, the warps of a pair half of k each.
#include "gemm_batch.cuh"
#include "gemm_weights.cuh"
#include "mma.cuh"

#define BS_THREADS 256, 2
#define BS_WARPS 8
#define BS_SHARED_BYTES (112 * 1024) /* two blocks a multiprocessor */

// Columns in eights (NB), and how activations are staged.
template <int NB>
struct Shape {
    static constexpr int columns = 8 * NB;
    static constexpr int x_bytes = columns * BS_ROW_BYTES;
    static constexpr int at_once = NB < 4 ? NB : 4; /* eights that are added up at once */
    static constexpr int stages = NB < 4 ? 5 : 4;
};

template <class J>
static constexpr int units_a_pass = BS_EXCHANGED / slots_a_unit<J>;

// What a block has yet to ask memory for: step `step` of the pass that begins at `unit`, for the
// activation rows from `row` on; `stride` steps at a time.
template <class J>
struct Cursor {
    const J &job;
    const Share &share;
    int stride, row, unit, step;
    Source source;

    __device__ __forceinline__ bool done() const { return row >= job.rows; }

    __device__ __forceinline__ void begin_pass() { source.point(job, unit, share.end); }

    __device__ __forceinline__ void next() {
        step += stride;
        if (step < share.last_step) return;
        step = share.first_step;
        unit += units_a_pass<J>;
        if (unit >= share.end) {
            unit = share.from;
            row += BS_COLUMNS;
        }
        if (!done()) begin_pass();
    }
};

template <class J>
static __device__ __forceinline__ Cursor<J> start(const J &job, const Share &share, int stride) {
    Cursor<J> cursor = {job, share, stride, 0, share.from, share.first_step, {}};
    if (share.from >= share.end || share.first_step >= share.last_step) cursor.row = job.rows;
    else cursor.begin_pass();
    return cursor;
}

// Sixteen bytes a thread of each activation row: rows past the last stay as they are, for no product
// but their own reads them.
template <int NB, class J>
static __device__ __forceinline__ void fetch_x(u8 *to, const J &job, int row, int step) {
    int piece = (int)threadIdx.x % 8, k = step * BS_DEPTH + piece * 8, first = (int)threadIdx.x / 8;
    to += swizzled(first, piece);
#pragma unroll
    for (int i = 0; i < Shape<NB>::columns; i += 32)
        if (row + first + i < job.rows && first + i < Shape<NB>::columns)
            fetch_values(to + i * BS_ROW_BYTES, job.x + (i64)(row + first + i) * job.k + k, job.k - k);
}

// Four 8x8 matrices of bf16: lane i points at a row of matrix i / 8.
static __device__ __forceinline__ void load_matrices(u32 (&to)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(in_shared(row))
                 : "memory");
}

// Where this thread's rows of matrices lie in a stage: of weights for both steps of 16, of activations.
struct Places {
    int w[2], x;
};

static __device__ __forceinline__ Places places() {
    int lane = (int)threadIdx.x % 32, group = (int)threadIdx.x / 32 % 4, piece = (int)threadIdx.x / 128 * 4;
    int row = group * 16 + lane % 16;
    return Places{{swizzled(row, piece + lane / 16), swizzled(row, piece + 2 + lane / 16)},
                  swizzled(lane % 8, piece + lane / 8)};
}

template <int NB>
static __device__ __forceinline__ void multiply_step(float (&sums)[2][NB][4], const u8 *w, const u8 *x, Places at) {
    u32 rows[2][2][4];
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) load_matrices(rows[m][i], w + at.w[i] + m * 64 * BS_ROW_BYTES);
#pragma unroll
    for (int f = 0; f < NB; f++) {
        u32 columns[4];
        load_matrices(columns, x + at.x + f * 8 * BS_ROW_BYTES);
#pragma unroll
        for (int m = 0; m < 2; m++) {
            mma_16x8x16(sums[m][f], rows[m][0], columns[0], columns[1]);
            mma_16x8x16(sums[m][f], rows[m][1], columns[2], columns[3]);
        }
    }
}

// --- the end of a pass -------------------------------------------------------------------------

// The sums of both warps of a pair: each keeps those of one of their two slots.
template <int NB, int EIGHTS>
static __device__ __forceinline__ void add_pair(float4 *kept, const float (&sums)[2][NB][4], int first, float4 *buffer) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    bool second = warp >= 4;
#pragma unroll
    for (int f = 0; f < EIGHTS; f++) {
        const float *a = sums[0][first + f], *b = sums[1][first + f];
        kept[f] = second ? make_float4(b[0], b[1], b[2], b[3]) : make_float4(a[0], a[1], a[2], a[3]);
        buffer[(warp * EIGHTS + f) * 32 + lane] =
            second ? make_float4(a[0], a[1], a[2], a[3]) : make_float4(b[0], b[1], b[2], b[3]);
    }
    __syncthreads();
#pragma unroll
    for (int f = 0; f < EIGHTS; f++) kept[f] = plus(kept[f], buffer[((warp ^ 4) * EIGHTS + f) * 32 + lane]);
}

// Sends each slot's sums to the block that gives it out.
template <int EIGHTS>
static __device__ __forceinline__ void send(const float4 *kept, Exchange<EIGHTS> exchange) {
    int lane = (int)threadIdx.x % 32, slot = (int)threadIdx.x / 32;
    float4 *to = of_block(exchange.place(slot, cluster_rank()), exchange.owner(slot));
    cluster_sync();
#pragma unroll
    for (int f = 0; f < EIGHTS; f++) to[f * 32 + lane] = kept[f];
    cluster_sync();
}

template <int NB, int EIGHTS, class J>
static __device__ __forceinline__ void end_pass(const J &job, const float (&sums)[2][NB][4],
                                                Exchange<EIGHTS> exchange, int unit, int end, int row) {
#pragma unroll
    for (int first = 0; first < NB; first += EIGHTS) {
        float4 kept[EIGHTS];
        __syncthreads();
        add_pair<NB, EIGHTS>(kept, sums, first, exchange.buffer);
        send(kept, exchange);
        give(job, exchange, unit, end, row + first * 8, BS_WARPS * 32);
    }
}

// --- a block -----------------------------------------------------------------------------------

// Calls `f(row, unit)` for each pass of a block.
template <class J, class F>
static __device__ __forceinline__ void each_pass(const J &job, const Share &share, F f) {
    for (int row = 0; row < job.rows; row += BS_COLUMNS)
        for (int unit = share.from; unit < share.end; unit += units_a_pass<J>) f(row, unit);
}

// A stage holds a step of weights and of activations.
template <int NB, class J>
static __device__ __forceinline__ void multiply_plain(const J &job, u8 *shared) {
    typedef Shape<NB> S;
    constexpr int stage_bytes = BS_W_BYTES + S::x_bytes, ahead = S::stages - 1;
    Share share = share_of(job, 1);
    Exchange<S::at_once> exchange = {(float4 *)(shared + S::stages * stage_bytes)};
    Cursor<J> wanted = start(job, share, 1), x_wanted = wanted;
    for (int i = 0; i < ahead; i++) {
        if (!wanted.done()) fetch_rows(shared + i * stage_bytes, wanted.source, job, wanted.step), wanted.next();
        fetch_commit();
    }
    before_next();
    after_previous();
    for (int i = 0; i < ahead; i++) {
        if (!x_wanted.done()) {
            fetch_x<NB>(shared + i * stage_bytes + BS_W_BYTES, job, x_wanted.row, x_wanted.step);
            x_wanted.next();
        }
        fetch_commit();
    }
    int stage = 0;
    each_pass(job, share, [&](int row, int unit) {
        float sums[2][NB][4] = {};
        for (int step = share.first_step; step < share.last_step; step++) {
            fetch_wait<ahead - 1>();
            __syncthreads();
            u8 *free = shared + (stage ? stage - 1 : ahead) * stage_bytes;
            if (!wanted.done()) {
                fetch_rows(free, wanted.source, job, wanted.step);
                fetch_x<NB>(free + BS_W_BYTES, job, wanted.row, wanted.step);
                wanted.next();
            }
            fetch_commit();
            const u8 *at = shared + stage * stage_bytes;
            multiply_step<NB>(sums, at, at + BS_W_BYTES, places());
            stage = stage == ahead ? 0 : stage + 1;
        }
        end_pass(job, sums, exchange, unit, share.end, row);
    });
}

// Weights in one ring, a chunk a stage; activations in another, a step a stage; the step that is
// multiplied as bf16 where the sums are exchanged after.
template <int NB, class J>
static __device__ __forceinline__ void multiply_packed(const J &job, u8 *shared) {
    typedef Shape<NB> S;
    constexpr int x_stages = 3, chunks = (BS_SHARED_BYTES - BS_W_BYTES - x_stages * S::x_bytes) / Chunk::stage_bytes;
    static_assert(chunks >= 2, "a chunk is multiplied while the next arrives");
    u8 *step_at = shared, *x_at = shared + BS_W_BYTES, *chunks_at = x_at + x_stages * S::x_bytes;
    Share share = share_of(job, Chunk::steps);
    Exchange<S::at_once> exchange = {(float4 *)step_at};
    Cursor<J> wanted = start(job, share, Chunk::steps), x_wanted = start(job, share, 1), at = wanted;
    for (int i = 0; i < chunks - 1; i++)
        if (!wanted.done()) {
            fetch_chunk(chunks_at + i * Chunk::stage_bytes, wanted.source, job, wanted.step / Chunk::steps);
            wanted.next();
        }
    fetch_commit();
    before_next();
    after_previous();
    auto fetch_next_x = [&](int stage) {
        if (!x_wanted.done()) {
            fetch_x<NB>(x_at + stage * S::x_bytes, job, x_wanted.row, x_wanted.step);
            x_wanted.next();
        }
    };
    for (int i = 0; i < x_stages - 1; i++) fetch_next_x(i), fetch_commit();
    int stage = 0, chunk = 0;
    each_pass(job, share, [&](int row, int unit) {
        float sums[2][NB][4] = {};
        for (int step = share.first_step; step < share.last_step; step++) {
            fetch_wait<x_stages - 2>();
            __syncthreads();
            if (step % Chunk::steps == 0 && !wanted.done()) {
                u8 *free = chunks_at + (chunk ? chunk - 1 : chunks - 1) * Chunk::stage_bytes;
                fetch_chunk(free, wanted.source, job, wanted.step / Chunk::steps);
                wanted.next();
            }
            fetch_next_x(stage ? stage - 1 : x_stages - 1);
            fetch_commit();
            unpack_step(step_at, chunks_at + chunk * Chunk::stage_bytes, at.source, job, step);
            __syncthreads();
            multiply_step<NB>(sums, step_at, x_at + stage * S::x_bytes, places());
            stage = stage == x_stages - 1 ? 0 : stage + 1;
            if (step % Chunk::steps == Chunk::steps - 1 || step == share.last_step - 1) {
                chunk = chunk == chunks - 1 ? 0 : chunk + 1;
                at.next();
            }
        }
        end_pass(job, sums, exchange, unit, share.end, row);
    });
}

template <int NB, class J>
static __device__ __forceinline__ void multiply(const J &job, u8 *shared) {
    if constexpr (BS_FORMAT == BS_BF16) multiply_plain<NB>(job, shared);
    else multiply_packed<NB>(job, shared);
}

template <class J>
static __device__ __forceinline__ void run(const J &job) {
    extern __shared__ __align__(1024) u8 shared[];
    if (job.rows <= 16) multiply<2>(job, shared);
    else if (job.rows <= 32) multiply<4>(job, shared);
    else multiply<8>(job, shared);
}

#define BS_NAMED(family, ending) BS_ENTRY(family##_q_, ending)
#define BS_RUN run
#define BS_BESIDE(matrices)
#define BS_BESIDE_ARGS
#include "gemm_entries.cuh"
