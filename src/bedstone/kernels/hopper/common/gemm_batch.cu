// Products of a batch's rows, which take the time that their weights take to arrive: one thread has a
// ring of stages in shared memory filled, two warpgroups multiply. Weights are the rows of the matrix
// instruction, activations its columns; a warp's 16 rows are one slot.
#include "gemm_batch.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

#define BS_WARPS 8 /* that multiply */
#define BS_THREADS 288, 2
#define BS_SHARED_BYTES (112 * 1024) /* two blocks a multiprocessor */
#define BS_RING_STAGES 8

// A box of weights and where in a stage's weights it goes.
struct Box {
    const Map *map;
    int row, at;
};

// What a block shares beside the ring; boxes are the filling thread's own.
struct Barriers {
    Box boxes[BS_EXCHANGED];
    u64 full[BS_RING_STAGES], empty[BS_RING_STAGES];
    u64 received, may_send; /* all sums of a pass are here; every owner is done with the last */
};

// What the sums of a pass leave of shared memory.
template <int NB>
static constexpr int ring_bytes = BS_SHARED_BYTES - Exchange<NB>::bytes;

// How a share is passed through: units a pass, as even as they can be, and stages of the ring.
struct Passes {
    int units, stages, stage_bytes;
};

template <int NB, class J>
static __device__ __forceinline__ Passes passes_of(const J &, Share share) {
    constexpr int each = slots_a_unit<J>;
    int all = share.end - share.from, passes = ceil_div(all * each, BS_EXCHANGED);
    int units = ceil_div(all, passes), slots = J::gated ? BS_EXCHANGED : units;
    int bytes = slots * BS_SLOT_BYTES + 8 * NB * BS_ROW_BYTES;
    return Passes{units, least(ring_bytes<NB> / bytes, BS_RING_STAGES), bytes};
}

// One thread's work: the stages of a ring, as soon as they are free.
template <int NB, class J, class M>
struct Filler {
    static constexpr int x_bytes = 8 * NB * BS_ROW_BYTES, x_height = NB == 2 ? 0 : NB == 4 ? 1 : 2;
    const J &job;
    const M &maps;
    Passes passes;
    u32 ring, full;
    Box *boxes; /* that a step of the pass is made of */
    int count;

    // Units [unit, unit + units): as few boxes as lie in one matrix each and are 16 to 128 rows high.
    __device__ __forceinline__ void point(int unit, int units) {
        count = 0;
        for (int done = 0; done < units;) {
            int tile = unit + done, matrix;
            Part part = part_of(job, 16, tile, matrix);
            int run = least(units - done, ceil_div(part.n, 16) - tile), height = 31 - __clz(run);
            for (int of = 0; of < slots_a_unit<J>; of++)
                boxes[count++] = Box{maps.w[matrix + of] + height, tile * 16, (done + 4 * of) * BS_SLOT_BYTES};
            done += 1 << height;
        }
    }
    __device__ __forceinline__ void weights(int stage, int units, int step) const {
        u32 barrier = full + stage * 8, to = ring + stage * passes.stage_bytes + x_bytes;
        u64 policy = passing_through();
        barrier_expect(barrier, x_bytes + units * slots_a_unit<J> * BS_SLOT_BYTES);
        for (int i = 0; i < count; i++) {
            Box box = boxes[i];
            copy_box_through(to + box.at, box.map, step * BS_DEPTH, box.row, barrier, policy);
        }
    }
    __device__ __forceinline__ void activations(int stage, int row, int step) const {
        copy_box(ring + stage * passes.stage_bytes, maps.x + x_height, step * BS_DEPTH, row, full + stage * 8);
    }
};

// The first stages' weights are asked for while the launch before still runs.
template <int NB, class J, class M>
static __device__ __forceinline__ void fill(const J &job, const M &maps, Share share, Passes passes, u8 *ring,
                                            Barriers *barriers) {
    Filler<NB, J, M> filler = {job, maps, passes, shared_address(ring), shared_address(barriers->full), barriers->boxes, 0};
    int early = least(passes.stages, share.last_step - share.first_step), done = 0;
    filler.point(share.from, least(passes.units, share.end - share.from));
    for (int i = 0; i < early; i++)
        filler.weights(i, least(passes.units, share.end - share.from), share.first_step + i);
    before_next();
    after_previous();
    for (int i = 0; i < early; i++) filler.activations(i, 0, share.first_step + i);
    Turn turn = {0, 1};
    for (int row = 0; row < job.rows; row += BS_COLUMNS)
        for (int unit = share.from; unit < share.end; unit += passes.units) {
            int units = least(passes.units, share.end - unit);
            filler.point(unit, units);
            for (int step = share.first_step; step < share.last_step; step++, turn.next(passes.stages)) {
                if (done++ < early) continue;
                barrier_wait(barriers->empty + turn.stage, turn.parity);
                filler.weights(turn.stage, units, step);
                filler.activations(turn.stage, row, step);
            }
        }
}

// --- what a cluster adds up --------------------------------------------------------------------

static __device__ __forceinline__ void sync_multipliers() {
    asm volatile("bar.sync 1, %0;" ::"n"(BS_WARPS * 32) : "memory");
}

static __device__ __forceinline__ u32 remote_address(const void *p, int rank) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(p)), "r"(rank));
    return there;
}

static __device__ __forceinline__ void send_async(u32 to, float4 v, u32 barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
        "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(barrier)
        : "memory");
}

static __device__ __forceinline__ void arrive_remote(u32 barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void wait_cluster(u64 *barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}\n" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// The sums of a pass on their way through the cluster: they are taken while the next pass is multiplied.
template <int NB>
struct Crossing {
    Exchange<NB> exchange;
    Barriers *barriers;
    int sent, taken;     /* passes so far */
    int unit, end, row;  /* of the pass that was sent last */

    // Sends each slot's sums to the block that gives it out, once that has given out those before.
    __device__ __forceinline__ void send(const float *sums, int of_unit, int of_end, int of_row) {
        int slot = (int)threadIdx.x / 32, owner = exchange.owner(slot);
        if (sent > 0) wait_cluster(&barriers->may_send, (sent - 1) & 1);
        if (threadIdx.x == 0) barrier_expect(&barriers->received, exchange.bytes);
        u32 to = remote_address(exchange.place(slot, cluster_rank()) + threadIdx.x % 32, owner);
        u32 barrier = remote_address(&barriers->received, owner);
#pragma unroll
        for (int f = 0; f < 4 * NB; f += 4)
            send_async(to + f * 128, make_float4(sums[f], sums[f + 1], sums[f + 2], sums[f + 3]), barrier);
        sent++;
        unit = of_unit, end = of_end, row = of_row;
    }

    // Gives out what was sent, if anything was.
    template <class J>
    __device__ __forceinline__ void take(const J &job) {
        if (taken == sent) return;
        wait_cluster(&barriers->received, taken & 1);
        give(job, exchange, unit, end, row, BS_WARPS * 32);
        sync_multipliers();
        if ((int)threadIdx.x < cluster_size()) arrive_remote(remote_address(&barriers->may_send, (int)threadIdx.x));
        taken++;
    }
};

// --- a block -----------------------------------------------------------------------------------

// Where the warps that multiply are.
template <int NB>
struct State {
    u8 *ring;
    Barriers *barriers;
    Turn turn;
    Crossing<NB> crossing;
};

template <int NB>
static __device__ __forceinline__ void multiply_stage(float (&sums)[NB * 4], u32 stage, bool more) {
    u64 x = wgmma_tile(stage), w = wgmma_tile(stage + 8 * NB * BS_ROW_BYTES + threadIdx.x / 128 * 4 * BS_SLOT_BYTES);
    wgmma_begin();
#pragma unroll
    for (int i = 0; i < BS_DEPTH / 16; i++) wgmma<8 * NB>(sums, w + 2 * i, x + 2 * i, more || i > 0);
    wgmma_commit();
    wgmma_wait<0>(sums);
}

// The pass of units [unit, end).
template <int NB, class J>
static __device__ __forceinline__ void multiply_pass(const J &job, Share share, Passes passes, State<NB> &at, int row,
                                                     int unit, int end) {
    float sums[NB * 4];
    for (int step = share.first_step; step < share.last_step; step++) {
        barrier_wait(at.barriers->full + at.turn.stage, at.turn.parity);
        multiply_stage<NB>(sums, shared_address(at.ring) + at.turn.stage * passes.stage_bytes, step > share.first_step);
        if (threadIdx.x % 32 == 0) barrier_arrive(at.barriers->empty + at.turn.stage);
        at.turn.next(passes.stages);
        at.crossing.take(job);
    }
    at.crossing.send(sums, unit, end, row);
}

template <int NB, class J>
static __device__ __forceinline__ void multiply(const J &job, Share share, Passes passes, u8 *ring,
                                                Barriers *barriers) {
    State<NB> at = {ring, barriers, {0, 0}, {{(float4 *)(ring + ring_bytes<NB>)}, barriers, 0, 0, 0, 0, 0}};
    after_previous();
    for (int row = 0; row < job.rows; row += BS_COLUMNS)
        for (int unit = share.from; unit < share.end; unit += passes.units)
            multiply_pass<NB>(job, share, passes, at, row, unit, least(unit + passes.units, share.end));
    at.crossing.take(job);
}

template <int NB, class J, class M>
static __device__ __forceinline__ void multiply_block(const J &job, const M &maps, Share share, u8 *ring,
                                                      Barriers *barriers) {
    Passes passes = passes_of<NB>(job, share);
    if (threadIdx.x < BS_WARPS * 32) multiply<NB>(job, share, passes, ring, barriers);
    else if (threadIdx.x == BS_WARPS * 32) fill<NB>(job, maps, share, passes, ring, barriers);
}

template <class J, class M>
static __device__ __forceinline__ void run(const J &job, const M &maps) {
    extern __shared__ __align__(1024) u8 ring[];
    __shared__ Barriers barriers;
    Share share = share_of(job, 1);
    // where k is too short for all blocks, those without a share read what lies past its end: zeros
    if (share.first_step == share.last_step) share = Share{share.from, share.end, ceil_div(job.k, BS_DEPTH), ceil_div(job.k, BS_DEPTH) + 1};
    if (threadIdx.x == 0) {
        for (int i = 0; i < BS_RING_STAGES; i++) {
            barrier_init(barriers.full + i, 1);
            barrier_init(barriers.empty + i, BS_WARPS);
        }
        barrier_init(&barriers.received, 1);
        barrier_init(&barriers.may_send, cluster_size());
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();
    if (share.from < share.end) {
        if (job.rows <= 16) multiply_block<2>(job, maps, share, ring, &barriers);
        else if (job.rows <= 32) multiply_block<4>(job, maps, share, ring, &barriers);
        else multiply_block<8>(job, maps, share, ring, &barriers);
    }
    __syncwarp();
    cluster_sync();
}

#define BS_NAMED(family, ending) BS_ENTRY(family##_q_, ending##_batch)
#define BS_RUN run
#define BS_BESIDE(matrices) , const __grid_constant__ Maps<matrices, 3, 4> maps
#define BS_BESIDE_ARGS , maps
#include "gemm_entries.cuh"
