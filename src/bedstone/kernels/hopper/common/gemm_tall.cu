// Products of many rows (a chunk of a prompt) on the warpgroup matrix units. A block multiplies tiles of
// 128 rows by up to 256 outputs, one after another: one warpgroup has a ring of stages in shared memory
// filled and gives its registers to the two others, which multiply 64 rows each.
#include "gemm.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

#define BS_THREADS 384
#define BS_TALL_ROWS 128
#define BS_DEPTH 64 /* values of k a stage: 128 bytes a row, what the swizzle spans */
#define BS_TALL_RING_BYTES (144 * 1024)
#define BS_MOST_RING 6
#define BS_ROW_BYTES (BS_DEPTH * 2)
#define BS_X_BYTES (BS_TALL_ROWS * BS_ROW_BYTES)
#define BS_LAID_COLUMNS 128                     /* that a warp lays out at once */
#define BS_LAID_PITCH (BS_LAID_COLUMNS * 4 + 32) /* rows begin in different banks */
#define BS_LAID_BYTES (16 * BS_LAID_PITCH)

// Warps that multiply.
#define BS_CONSUMERS 8

struct Ring {
    u8 *memory;
    u64 *full, *empty;
    int stages, stage_bytes;

    __device__ __forceinline__ u32 at(int stage) const { return shared_address(memory) + stage * stage_bytes; }
    // Where a warp lays out sums.
    __device__ __forceinline__ u8 *laid() const {
        return memory + BS_TALL_RING_BYTES + threadIdx.x / 32 * BS_LAID_BYTES;
    }
};

// Rows [row, …) by outputs [column, …) of a part.
struct Tile {
    int row, column;
};

template <class J>
static constexpr __device__ __forceinline__ int outputs_of(int width) { return J::gated ? width / 2 : width; }

// The tile width that takes the least time: rounds of all blocks times what a tile of it takes, to which
// its ends add as much as some 24 columns.
template <class J>
static __device__ __forceinline__ int choose_width(const J &job) {
    const int widths[] = {256, 160, 128, 64};
    int best = 0, least_time = 0x7fffffff, row_tiles = ceil_div(job.rows, BS_TALL_ROWS);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int rounds = ceil_div(tiles_of(job, outputs_of<J>(widths[i])) * row_tiles, (int)gridDim.x);
        int time = rounds * (widths[i] + 24);
        if (time < least_time) best = widths[i], least_time = time;
    }
    return best;
}

// Calls `f(matrix, part, tile)` for each tile of this block: those of the same outputs side by side, so
// that weights come from memory once.
template <class J, class F>
static __device__ __forceinline__ void each_tile(const J &job, int width, F f) {
    int outs = outputs_of<J>(width), row_tiles = ceil_div(job.rows, BS_TALL_ROWS);
    int tiles = tiles_of(job, outs) * row_tiles;
    for (int at = (int)blockIdx.x; at < tiles; at += (int)gridDim.x) {
        int column_tile = at / row_tiles, matrix;
        int row = (at - column_tile * row_tiles) * BS_TALL_ROWS;
        Part part = part_of(job, outs, column_tile, matrix);
        f(matrix, part, Tile{row, column_tile * outs});
    }
}

// One thread's work: the stages of every tile, as soon as they are free.
template <class J, class M>
static __device__ __forceinline__ void fill(const J &job, const M &maps, int width, Ring ring) {
    Turn turn = {0, 1};
    int height = width == 256 ? 0 : width == 160 ? 1 : width == 128 ? 2 : 3; /* of the boxes there are maps for */
    each_tile(job, width, [&](int matrix, const Part &, Tile tile) {
        for (int k = 0; k < job.k; k += BS_DEPTH) {
            u32 full = shared_address(ring.full + turn.stage);
            u32 to = ring.at(turn.stage);
            barrier_wait(ring.empty + turn.stage, turn.parity);
            barrier_expect(full, BS_X_BYTES + width * BS_ROW_BYTES);
            copy_box(to, maps.x, k, tile.row, full);
            copy_box(to + BS_X_BYTES, maps.w[matrix] + height, k, tile.column, full);
            if (J::gated)
                copy_box(to + BS_X_BYTES + width / 2 * BS_ROW_BYTES, maps.w[matrix + 1] + height, k, tile.column, full);
            turn.next(ring.stages);
        }
    });
}

// A thread has two sums side by side of every eight columns; of sixteen it gets four from its neighbour, so
// that a row's are stored 32 bytes at a time or more. Those of eight columns from `at` on, and of the next.
static __device__ __forceinline__ void gather_four(float (&four)[4], const float *at) {
    bool odd = threadIdx.x % 2;
    float a = __shfl_xor_sync(BS_FULL, odd ? at[0] : at[4], 1), b = __shfl_xor_sync(BS_FULL, odd ? at[1] : at[5], 1);
    four[0] = odd ? a : at[0];
    four[1] = odd ? b : at[1];
    four[2] = odd ? at[4] : a;
    four[3] = odd ? at[5] : b;
}

template <int WIDTH, class J>
static __device__ __forceinline__ void put_tile(const J &job, const Part &part, Tile tile, const float *sums) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, row = tile.row + warp * 16 + lane / 4;
    int column = tile.column + lane % 2 * 8 + lane % 4 / 2 * 4;
#pragma unroll
    for (int half = 0; half < 2; half++, row += 8) {
        const float *at = sums + 2 * half;
        bool there = row < job.rows;
        i64 place = J::gated || !there ? row : place_of(part, row);
#pragma unroll
        for (int j = 0; j < outputs_of<J>(WIDTH) / 16; j++) {
            float four[4];
            gather_four(four, at + 8 * j);
            if constexpr (J::gated) {
                float up[4];
                gather_four(up, at + WIDTH / 4 + 8 * j);
                if (there) put_gated_four(job, row, column + 16 * j, four, up);
            } else if (there) {
                put_four(part, place, column + 16 * j, four);
            }
        }
    }
}

static __device__ __forceinline__ void laid_was_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// Whole rows of float sums, laid out in shared memory and stored from there while the next tile is
// multiplied: a warp's COUNT columns from `first` on.
template <int COUNT>
static __device__ __forceinline__ void lay_out(const Part &part, i64 place, const i64 (&places)[2], int column,
                                               const float *sums, u8 *laid) {
    int lane = (int)threadIdx.x % 32;
    laid_was_read();
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int j = 0; j < COUNT / 8; j++) {
            int at = 8 * j + lane % 4 * 2;
            i64 to = places[half] * part.n + column + at;
            float a = sums[4 * j + 2 * half], b = sums[4 * j + 2 * half + 1];
            if (places[half] >= 0) a = finished(part, a, column + at, to), b = finished(part, b, column + at + 1, to + 1);
            *(float2 *)(laid + (lane / 4 + 8 * half) * BS_LAID_PITCH + at * 4) = make_float2(a, b);
        }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (place >= 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(part.y + place * part.n + column),
                     "r"(shared_address(laid + lane * BS_LAID_PITCH)), "r"(COUNT * 4)
                     : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

template <int WIDTH>
static __device__ __forceinline__ void put_rows(const Part &part, int rows, Tile tile, const float *sums, u8 *laid) {
    int lane = (int)threadIdx.x % 32, row = tile.row + (int)threadIdx.x / 32 * 16;
    auto place = [&](int at) { return at < rows ? place_of(part, at) : (i64)-1; };
    i64 own = lane < 16 ? place(row + lane) : -1, places[2] = {place(row + lane / 4), place(row + lane / 4 + 8)};
    constexpr int first = WIDTH < BS_LAID_COLUMNS ? WIDTH : BS_LAID_COLUMNS;
    lay_out<first>(part, own, places, tile.column, sums, laid);
    if constexpr (WIDTH > first) lay_out<WIDTH - first>(part, own, places, tile.column + first, sums + first / 2, laid);
}

// Whether a tile's rows are floats that lie on sixteens, and all its columns are there.
static __device__ __forceinline__ bool in_rows(const Part &part, Tile tile, int width) {
    return !part.slot && part.n % 4 == 0 && (u64)part.y % 16 == 0 && tile.column + width <= part.n;
}

template <int WIDTH, class J>
static __device__ __forceinline__ void multiply(const J &job, Ring ring) {
    int lane = (int)threadIdx.x % 32;
    u32 group = threadIdx.x / 128 * 64 * BS_ROW_BYTES;
    Turn turn = {0, 0};
    each_tile(job, WIDTH, [&](int, const Part &part, Tile tile) {
        float sums[WIDTH / 2];
        int before = -1;
        for (int k = 0; k < job.k; k += BS_DEPTH) {
            barrier_wait(ring.full + turn.stage, turn.parity);
            u32 stage = ring.at(turn.stage);
            u64 x = wgmma_tile(stage + group), w = wgmma_tile(stage + BS_X_BYTES);
            wgmma_begin();
#pragma unroll
            for (int i = 0; i < BS_DEPTH / 16; i++) wgmma<WIDTH>(sums, x + 2 * i, w + 2 * i, k + i > 0);
            wgmma_commit();
            wgmma_wait<1>(sums);
            if (before >= 0 && lane == 0) barrier_arrive(ring.empty + before);
            before = turn.stage;
            turn.next(ring.stages);
        }
        wgmma_wait<0>(sums);
        if (before >= 0 && lane == 0) barrier_arrive(ring.empty + before);
        if (!J::gated && in_rows(part, tile, WIDTH)) put_rows<WIDTH>(part, job.rows, tile, sums, ring.laid());
        else put_tile<WIDTH>(job, part, tile, sums);
    });
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

template <class J, class M>
static __device__ __forceinline__ void run(const J &job, const M &maps) {
    extern __shared__ __align__(1024) u8 shared[];
    __shared__ u64 full[BS_MOST_RING], empty[BS_MOST_RING];
    int width = choose_width(job), stage_bytes = BS_X_BYTES + width * BS_ROW_BYTES;
    Ring ring = {shared, full, empty, least(BS_TALL_RING_BYTES / stage_bytes, BS_MOST_RING), stage_bytes};
    if (threadIdx.x == 0) {
        for (int i = 0; i < BS_MOST_RING; i++) {
            barrier_init(full + i, 1);
            barrier_init(empty + i, BS_CONSUMERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    before_next();
    after_previous();
    if (threadIdx.x >= BS_CONSUMERS * 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x % 128 == 0) fill(job, maps, width, ring);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        if (width == 256) multiply<256>(job, ring);
        else if (width == 128) multiply<128>(job, ring);
        else if (width == 64) multiply<64>(job, ring);
        else multiply<160>(job, ring);
    }
}

#define BS_NAMED(family, ending) BS_ENTRY(family##_q_, ending##_tall)
#define BS_RUN run
#define BS_BESIDE(matrices) , const __grid_constant__ Maps<matrices, 1, 4> maps
#define BS_BESIDE_ARGS , maps
#include "gemm_entries.cuh"
