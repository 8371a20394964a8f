// Products of a batch's rows, 64 at most, which take the time that their weights take to arrive: one thread has a
// ring of stages in shared memory filled, two warpgroups multiply. Weights are the rows of the matrix
// instruction, activations its columns. A unit is eight outputs.
//
// A cluster owns a share of the outputs. Where a pass takes all of them its blocks share k, and add up
// their sums when they have multiplied; where there are more they share the outputs.
#include "cluster.cuh"
#include "gemm.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

#define BS_THREADS 288, 2
#define BS_MULTIPLIERS 256
#define BS_DEPTH 64 /* values of k a step */
#define BS_ROW_BYTES (BS_DEPTH * 2)
#define BS_UNIT 8
#define BS_UNIT_BYTES (BS_UNIT * BS_ROW_BYTES)
#define BS_GROUP_UNITS 8 /* that a warpgroup multiplies at once */
#define BS_PASS_UNITS 32 /* of two warpgroups that multiply twice a step */
#define BS_BOX_UNITS 16  /* of the highest box */
#define BS_MOST_STAGES 16

// Units that one is made of in a stage, and blocks of a cluster.
template <class J>
static constexpr int halves = J::gated ? 2 : 1;
template <class J>
static constexpr int blocks = J::gated ? 2 : 4;

// What a block multiplies, units in passes and steps of k, and how its shared memory lies: stages of
// activations, then units of weights; of a gated unit all gates, then what they gate. One thread makes it,
// in shared memory: multipliers have few registers left.
struct Plan {
    int from, end, passes, most; /* units of a pass, at most */
    int first_step, last_step;
    int stages, stage_bytes, x_bytes;
    int second; /* bytes from a warpgroup's first units to its second */
    int laid, pitch; /* where sums are laid out, a row of activations after another: bytes; floats a row */
    bool split; /* the cluster's blocks share k, not the outputs */

    __device__ __forceinline__ int pass_begin(int pass) const { return from + (end - from) * pass / passes; }
    __device__ __forceinline__ int steps() const { return last_step - first_step; }

    template <class J>
    __device__ __forceinline__ void share(const J &job) {
        constexpr int pass = BS_PASS_UNITS / halves<J>, ranks = blocks<J>;
        i64 units = tiles_of(job, BS_UNIT);
        int id = (int)blockIdx.x / ranks, clusters = (int)gridDim.x / ranks, rank = cluster_rank();
        int steps = ceil_div(job.k, BS_DEPTH);
        from = (int)(units * id / clusters), end = (int)(units * (id + 1) / clusters);
        most = ceil_div((int)units, clusters);
        split = most <= pass;
        passes = 1, first_step = 0, last_step = steps;
        if (split) {
            first_step = steps * rank / ranks, last_step = steps * (rank + 1) / ranks;
            // where k is too short for all blocks, those without a share read what lies past its end: zeros
            if (first_step == last_step) first_step = steps, last_step = steps + 1;
        } else {
            int all = end - from;
            end = from + all * (rank + 1) / ranks, from += all * rank / ranks;
            most = ceil_div(most, ranks), passes = ceil_div(most, pass), most = ceil_div(most, passes);
        }
    }
    // Of one pass sums are laid out where its stages were.
    template <class J>
    __device__ __forceinline__ void lay(const J &job) {
        int bytes, whole = (J::gated || most <= 2 * BS_GROUP_UNITS ? 2 : 4) * BS_GROUP_UNITS;
        asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
        x_bytes = (job.rows <= 16 ? 16 : job.rows <= 32 ? 32 : 64) * BS_ROW_BYTES;
        stage_bytes = x_bytes + most * halves<J> * BS_UNIT_BYTES;
        pitch = most * halves<J> * BS_UNIT + 4; /* so that rows begin in different banks */
        second = (J::gated ? most : 2 * BS_GROUP_UNITS) * BS_UNIT_BYTES;
        // as many rows as are multiplied, though those past the last go nowhere
        laid = passes == 1 ? 0 : bytes - pitch * (x_bytes / BS_ROW_BYTES) * 4 & ~15;
        if (passes > 1) bytes = laid;
        // warpgroups multiply whole tiles: what lies past the last unit is read, and goes nowhere
        stages = least((bytes - (whole - most) * BS_UNIT_BYTES) / stage_bytes, BS_MOST_STAGES);
    }
};

// What a block shares beside the ring.
struct Block {
    Plan plan;
    u64 full[BS_MOST_STAGES], empty[BS_MOST_STAGES];
};

// One thread's work: the stages of a ring, as soon as they are free.
template <class J, class M>
struct Filler {
    const J &job;
    const M &maps;
    Block &block;
    Plan plan;
    u32 ring, full;

    // Units [unit, end): as few boxes as lie in one matrix each and are 8 to 128 rows high.
    __device__ __forceinline__ void weights(int stage, int unit, int end, int step) const {
        u32 barrier = full + stage * 8, to = ring + stage * plan.stage_bytes + plan.x_bytes;
        u64 policy = passing_through();
        barrier_expect(barrier, plan.x_bytes + (end - unit) * halves<J> * BS_UNIT_BYTES);
        while (unit < end) {
            int tile = unit, matrix;
            Part part = part_of(job, BS_UNIT, tile, matrix);
            int run = least(least(end - unit, ceil_div(part.n, BS_UNIT) - tile), BS_BOX_UNITS), height = 31 - __clz(run);
            copy_box_through(to, maps.w[matrix] + height, step * BS_DEPTH, tile * BS_UNIT, barrier, policy);
            if constexpr (J::gated)
                copy_box_through(to + plan.second, maps.w[1] + height, step * BS_DEPTH, tile * BS_UNIT, barrier, policy);
            to += BS_UNIT_BYTES << height;
            unit += 1 << height;
        }
    }
    __device__ __forceinline__ void activations(int stage, int step) const {
        copy_box(ring + stage * plan.stage_bytes, maps.x + (job.rows <= 16 ? 0 : job.rows <= 32 ? 1 : 2),
                 step * BS_DEPTH, 0, full + stage * 8);
    }
    // The first stages' weights are asked for while the launch before still runs.
    __device__ __forceinline__ void run() const {
        int early = least(plan.stages, plan.steps()), done = 0;
        for (int i = 0; i < early; i++) weights(i, plan.pass_begin(0), plan.pass_begin(1), plan.first_step + i);
        before_next();
        after_previous();
        for (int i = 0; i < early; i++) activations(i, plan.first_step + i);
        Turn turn = {0, 1};
        for (int pass = 0; pass < plan.passes; pass++) {
            int unit = plan.pass_begin(pass), end = plan.pass_begin(pass + 1);
            for (int step = plan.first_step; step < plan.last_step; step++, turn.next(plan.stages)) {
                if (done++ < early) continue;
                barrier_wait(block.empty + turn.stage, turn.parity);
                weights(turn.stage, unit, end, step);
                activations(turn.stage, step);
            }
        }
    }
};

// --- results -----------------------------------------------------------------------------------

static __device__ __forceinline__ void sync_multipliers() {
    asm volatile("bar.sync 1, %0;" ::"n"(BS_MULTIPLIERS) : "memory");
}

// TILES times 64 rows of weights of a warpgroup, a warp's 16 of each: of a gated unit the gates and what
// they gate, else outputs 128 apart. Four sums of every eight rows of activations are those of outputs g
// and g + 8, with g = lane / 4, for the rows 2t and 2t + 1, with t = lane % 4.
template <int NB, int TILES, class J>
struct Sums {
    float at[TILES][4 * NB];

    // Lays out the sums of `count` outputs, those that are gated from `second` on.
    __device__ __forceinline__ void lay_out(float *to, int pitch, int count, int second) const {
        int lane = (int)threadIdx.x % 32, output = (int)threadIdx.x / 32 * 16 + lane / 4;
        to += lane % 4 * 2 * pitch + output;
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            int apart = t * (J::gated ? second : 2 * BS_GROUP_UNITS * BS_UNIT), first = J::gated ? 0 : apart;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                if (output + first + 8 * half >= count) continue;
                float *column = to + apart + 8 * half;
#pragma unroll
                for (int i = 0; i < NB; i++, column += 8 * pitch) {
                    column[0] = at[t][4 * i + 2 * half];
                    column[pitch] = at[t][4 * i + 2 * half + 1];
                }
            }
        }
    }
};

// Four sums of all blocks of a cluster that share k, in their order; or this one's.
template <int BLOCKS>
static __device__ __forceinline__ void sum_of_blocks(float (&sum)[4], const float *p, bool split) {
    float4 of[BLOCKS];
#pragma unroll
    for (int i = 0; i < BLOCKS; i++)
        of[i] = split ? *(const float4 *)of_block(p, i) : i ? make_float4(0.f, 0.f, 0.f, 0.f) : *(const float4 *)p;
    sum[0] = of[0].x, sum[1] = of[0].y, sum[2] = of[0].z, sum[3] = of[0].w;
#pragma unroll
    for (int i = 1; i < BLOCKS; i++) sum[0] += of[i].x, sum[1] += of[i].y, sum[2] += of[i].z, sum[3] += of[i].w;
}

// Gives out what was laid out of units [unit, end): of what blocks share, this one's part.
template <class J>
static __device__ __forceinline__ void give(const J &job, const float *laid, const Plan &plan, int unit, int end) {
    constexpr int ranks = blocks<J>, fours = BS_UNIT / 4;
    int columns = (end - unit) * fours, all = columns * job.rows, rank = cluster_rank();
    int i = plan.split ? all * rank / ranks : 0, last = plan.split ? all * (rank + 1) / ranks : all;
#pragma unroll 1
    for (i += (int)threadIdx.x; i < last; i += BS_MULTIPLIERS) {
        int row = i / columns, column = i - row * columns;
        const float *at = laid + row * plan.pitch + column * 4;
        float sum[4];
        sum_of_blocks<ranks>(sum, at, plan.split);
        if constexpr (J::gated) {
            float up[4];
            sum_of_blocks<ranks>(up, at + plan.most * BS_UNIT, plan.split);
            put_gated_four(job, row, unit * BS_UNIT + column * 4, sum, up);
        } else {
            int tile = unit + column / fours;
            Part part = part_of(job, BS_UNIT, tile);
            put_four(part, place_of(part, row), tile * BS_UNIT + column % fours * 4, sum);
        }
    }
}

// --- a block -----------------------------------------------------------------------------------

template <int NB, int TILES, class J>
static __device__ __forceinline__ void multiply(const J &job, Block &block, u8 *memory) {
    Turn turn = {0, 0};
    u32 ring = shared_address(memory);
    u32 group = 8 * NB * BS_ROW_BYTES + threadIdx.x / 128 * BS_GROUP_UNITS * BS_UNIT_BYTES;
    after_previous();
    for (int pass = 0; pass < block.plan.passes; pass++) {
        Sums<NB, TILES, J> sums = {};
        int steps = block.plan.steps(), stages = block.plan.stages, bytes = block.plan.stage_bytes;
        int second = block.plan.second >> 4;
#pragma unroll 1
        for (int step = 0; step < steps; step++, turn.next(stages)) {
            barrier_wait(block.full + turn.stage, turn.parity);
            u32 stage = ring + turn.stage * bytes;
            u64 x = wgmma_tile(stage), w = wgmma_tile(stage + group);
            wgmma_begin();
#pragma unroll
            for (int i = 0; i < BS_DEPTH / 16; i++)
#pragma unroll
                for (int t = 0; t < TILES; t++) wgmma<8 * NB>(sums.at[t], w + t * second + 2 * i, x + 2 * i, step + i > 0);
            wgmma_commit();
#pragma unroll
            for (int t = 0; t < TILES; t++) wgmma_wait<0>(sums.at[t]);
            if (threadIdx.x % 32 == 0) barrier_arrive(block.empty + turn.stage);
        }
        int unit = block.plan.pass_begin(pass), end = block.plan.pass_begin(pass + 1);
        float *laid = (float *)(memory + block.plan.laid);
        sync_multipliers();
        sums.lay_out(laid, block.plan.pitch, (end - unit) * BS_UNIT, block.plan.most * BS_UNIT);
        if (block.plan.split) cluster_sync();
        else sync_multipliers();
        give(job, laid, block.plan, unit, end);
    }
}

template <int NB, class J>
static __device__ __forceinline__ void multiply(const J &job, Block &block, u8 *memory) {
    if (!J::gated && block.plan.most <= 2 * BS_GROUP_UNITS) multiply<NB, 1>(job, block, memory);
    else multiply<NB, 2>(job, block, memory);
}

template <class J, class M>
static __device__ __forceinline__ void run(const J &job, const M &maps) {
    extern __shared__ __align__(1024) u8 memory[];
    __shared__ Block block;
    if (threadIdx.x == BS_MULTIPLIERS) {
        block.plan.share(job);
        block.plan.lay(job);
        for (int i = 0; i < BS_MOST_STAGES; i++) {
            barrier_init(block.full + i, 1);
            barrier_init(block.empty + i, BS_MULTIPLIERS / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= BS_MULTIPLIERS) {
        if (threadIdx.x == BS_MULTIPLIERS)
            Filler<J, M>{job, maps, block, block.plan, shared_address(memory), shared_address(block.full)}.run();
        __syncwarp();
        if (block.plan.split) cluster_sync();
    } else if (job.rows <= 16) {
        multiply<2>(job, block, memory);
    } else if (job.rows <= 32) {
        multiply<4>(job, block, memory);
    } else {
        multiply<8>(job, block, memory);
    }
    cluster_sync(); /* no block leaves before the others have read its sums */
}

#define BS_NAMED(family, ending) BS_ENTRY(family##_q_, ending##_batch)
#define BS_RUN run
#define BS_BESIDE(matrices) , const __grid_constant__ Maps<matrices, 3, 5> maps
#define BS_BESIDE_ARGS , maps
#include "gemm_entries.cuh"
