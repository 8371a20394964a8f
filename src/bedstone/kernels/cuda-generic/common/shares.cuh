// A product's rows of weights as they are dealt to blocks and warps, and how a warp's come to it.
#pragma once
#include "activations.cuh"
#include "eight_bits.cuh"
#include "stream.cuh"

#define WARPS 8 // that multiply
#define THREADS (32 * WARPS)
#define BLOCK_THREADS (THREADS + (EIGHT_BITS ? 32 : 0))
#define SHARED_BYTES (96 * 1024)
#define RING_BYTES (12 * 1024) // of a warp, where each has a ring of its own
#define MOST_STAGES 12
#define SUMS 4032                             // that wait to be added up
#define FEW_BYTES (EIGHT_BITS ? 0 : 30 << 20) // of weights, for which half the blocks are enough
#define SLOT (32 * format::UNIT)
#define HELD (48 / format::UNIT) // units that a thread keeps

// All threads that multiply.
static __device__ __forceinline__ void sync_block() { asm volatile("bar.sync 0, %0;" ::"n"(THREADS) : "memory"); }

struct matrix {
    const u8 *w;
    const float *bias;
    float *y;
    int n;
};

// What a launch computes: PARTS matrices of one input, the last into rows `slot` of `table` where there
// is one; or, GATED, act(x part[0]) * (x part[1]).
template <int PARTS, bool GATED>
struct job {
    const float *x;
    matrix part[PARTS];
    int rows, k, act;
    code_t *codes;
    cache_t *table;
    const int *slot;
    const float *add; // to the product, or null
    float cap;        // cap * tanh(product / cap); 0: none

    // The part that has an output, and which of the part's it is.
    __device__ __forceinline__ int part_of(int &output) const {
        int p = 0;
#pragma unroll
        for (int i = 0; i < (GATED ? 0 : PARTS - 1); ++i)
            if (p == i && output >= part[i].n) output -= part[i].n, ++p;
        return p;
    }
};

// A block's outputs.
template <int PARTS, bool GATED>
struct dealt {
    static constexpr int STREAMS = GATED ? 2 : 1;
    int first, outputs;
    bool few; // weights, so that half the blocks do
    i64 row_bytes;

    __device__ explicit dealt(const job<PARTS, GATED> &j) {
        int all = 0;
#pragma unroll
        for (int p = 0; p < (GATED ? 1 : PARTS); ++p) all += j.part[p].n;
        row_bytes = format::bytes(j.k);
        few = row_bytes * all * STREAMS < FEW_BYTES;
        int blocks = few ? (gridDim.x + 1) / 2 : gridDim.x, block = min((int)blockIdx.x, blocks);
        first = (int)((i64)all * block / blocks);
        outputs = (int)((i64)all * min(block + 1, blocks) / blocks) - first;
    }
    // The row of an output, of the gate's or the other's; `end` is that of its matrix.
    __device__ __forceinline__ const u8 *row(const job<PARTS, GATED> &j, int local, int stream, const u8 *&end) const {
        int output = first + local, p = j.part_of(output);
        const u8 *w = GATED && stream ? j.part[PARTS - 1].w : j.part[0].w;
        int n = j.part[0].n;
#pragma unroll
        for (int i = 1; i < (GATED ? 0 : PARTS); ++i)
            if (p == i) w = j.part[i].w, n = j.part[i].n;
        end = w + row_bytes * n;
        return w + row_bytes * output;
    }
};

// What of their rows is this warp's: of a row's slots, 32 units each, those from `from` to `to`. `split` warps,
// a team, share a row; `teams` of them take the outputs in turn.
template <int PARTS, bool GATED>
struct share : dealt<PARTS, GATED> {
    using dealt<PARTS, GATED>::STREAMS, dealt<PARTS, GATED>::outputs;
    int units, split, member, team, teams, from, to;
    i64 offset;
    u32 bytes, pitch;

    __device__ explicit share(const job<PARTS, GATED> &j) : dealt<PARTS, GATED>(j) {
        units = (j.k + format::UNIT - 1) / format::UNIT;
        int slots = (units + 31) / 32;
        // a member without a slot would multiply what it does not have
        for (split = 1; 2 * split <= min(WARPS, slots) && (slots > split * HELD || pitch_of(slots, split) > RING_BYTES / 4);) split *= 2;
        team = threadIdx.x / 32 / split, member = threadIdx.x / 32 % split, teams = WARPS / split;
        from = slots * member / split, to = slots * (member + 1) / split;
        offset = format::bytes(from * SLOT);
        bytes = (u32)(format::bytes(min(to * SLOT, j.k)) - offset);
        pitch = pitch_of(slots, split);
    }

    // Bytes from one slice to the next in a ring: a copy begins up to 15 early and ends up to 15 late.
    static __device__ __forceinline__ u32 pitch_of(int slots, int split) {
        return ((u32)format::bytes((slots + split - 1) / split * SLOT) + 45) & ~15u;
    }

    // How many rows this team multiplies by one row of activations.
    __device__ __forceinline__ int items() const {
        return outputs > team ? (outputs - team + teams - 1) / teams * STREAMS : 0;
    }
    // Outputs that are added up at a time, of so many rows of activations.
    __device__ __forceinline__ int round(int rows) const { return SUMS / (rows * STREAMS * split) / teams * teams; }

    __device__ __forceinline__ const u8 *slice(const job<PARTS, GATED> &j, int local, int stream, const u8 *&end) const {
        return this->row(j, local, stream, end) + offset;
    }
};

// Slices as they lie in memory: older devices, and rows that no copy brings.
template <int PARTS, bool GATED>
struct in_place {
    const job<PARTS, GATED> &j;
    const share<PARTS, GATED> &s;

    __device__ __forceinline__ const u8 *arrived(int local, int stream) const {
        const u8 *end;
        return s.slice(j, local, stream, end);
    }
    __device__ __forceinline__ void done() const {}
};

#if __CUDA_ARCH__ >= 900
// Slices on their way through a warp's ring, in the order in which they are multiplied.
template <int PARTS, bool GATED>
struct ring {
    const job<PARTS, GATED> &j;
    const share<PARTS, GATED> &s;
    u8 *memory;
    u64 *full;
    int stages, left, local, stream = 0, asked = 0, at = 0;
    u32 turn = 0;
    bool exact = true; // every slice begins on 16 bytes and is whole sixteens

    __device__ ring(const job<PARTS, GATED> &of, const share<PARTS, GATED> &mine, u8 *stage, u64 *barriers, int passes)
        : j(of), s(mine), memory(stage), full(barriers), left(mine.items() * passes), local(mine.team) {
        stages = min(MOST_STAGES, (int)(RING_BYTES / s.pitch));
#pragma unroll
        for (int p = 0; p < PARTS; ++p) exact = exact && (((u64)j.part[p].w | s.row_bytes | s.offset | s.bytes) & 15) == 0;
        if (threadIdx.x % 32 == 0) {
            for (int i = 0; i < stages; ++i) barrier_init(full + i, 1);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncwarp();
#pragma unroll 1
        for (int i = 0; i < stages; ++i) ask();
        if (s.few && exact) bring_nearer();
    }

    // What the ring does not hold, into the second-level cache: few weights are all there when activations are.
    __device__ __forceinline__ void bring_nearer() const {
        int next = local, which = stream;
#pragma unroll 1
        for (int i = 0; i < min(left, s.items()); ++i) {
            const u8 *end, *from = s.slice(j, next, which, end);
            if (threadIdx.x % 32 == 0) bulk_prefetch(from, s.bytes);
            advance(next, which);
        }
    }
    // The slice after one.
    __device__ __forceinline__ void advance(int &at, int &which) const {
        which = GATED && !which;
        if (which) return;
        at += s.teams;
        if (at >= s.outputs) at = s.team;
    }

    __device__ __forceinline__ void ask() {
        if (left <= 0) return;
        if (threadIdx.x % 32 == 0) {
            const u8 *end, *from = s.slice(j, local, stream, end);
            u8 *to = memory + asked * s.pitch;
            u32 moved = s.bytes;
            if (!exact) {
                moved = bulk_bytes(from, s.bytes, end);
                copy_rest(to, from, s.bytes, end);
            }
            barrier_expect(full + asked, moved);
            if (moved) bulk_copy(to, exact ? from : from - skew(from), moved, full + asked, passing_through());
        }
        if (++asked == stages) asked = 0;
        --left;
        advance(local, stream);
    }
    __device__ __forceinline__ const u8 *arrived(int of, int which) {
        const u8 *end, *lies = memory + at * s.pitch;
        if (!exact) lies += skew(s.slice(j, of, which, end));
        barrier_wait(full + at, turn & 1);
        if (++at == stages) at = 0, ++turn;
        return lies;
    }
    // The last that arrived is used up.
    __device__ __forceinline__ void done() {
        __syncwarp();
        ask();
    }
};
#endif
