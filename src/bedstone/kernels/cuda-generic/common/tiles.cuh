// Rows of weights in blocks on their way through a block's ring: tiles of sixteen rows by some spans.
#pragma once
#include "shares.cuh"
#include "spans.cuh"

#define MOST_SPLIT 8
#define LAP 20                        // pieces of a row of activations that are kept at a time
#define MOST_SPANS (LAP * MOST_SPLIT) // that are kept: a tile of any format fits beside them
#define TOGETHER 2                    // rows of activations by which a tile is multiplied
#define SPAN_BYTES (u32)format::bytes(SPAN)

// How a block's warps share its outputs, which go by sixteens. `split` of them, a team, have sixteen rows, of whose
// spans each takes one in turn; `teams` take the sixteens in turn.
template <int PARTS, bool GATED>
struct tiled : dealt<PARTS, GATED> {
    int spans, split, member, team, teams, pieces, groups;

    __device__ explicit tiled(const job<PARTS, GATED> &j) : dealt<PARTS, GATED>(j) {
        spans = (j.k + SPAN - 1) / SPAN;
        for (split = MOST_SPLIT; split > spans;) split /= 2;
        team = threadIdx.x / 32 / split, member = threadIdx.x / 32 % split, teams = WARPS / split;
        pieces = (spans + split - 1) / split, groups = (this->outputs + GROUP - 1) / GROUP;
    }
    // Outputs of a turn of all teams; those that are added up at a time, of so many rows of activations.
    __device__ __forceinline__ int step() const { return GROUP * teams; }
    __device__ __forceinline__ int round(int rows) const { return SUMS / (rows * this->STREAMS * split) / step() * step(); }
    __device__ __forceinline__ int laps() const { return (pieces + LAP - 1) / LAP; }
    __device__ __forceinline__ int pieces_of(int lap) const { return min(LAP, pieces - LAP * lap); }
    // Teams that have outputs of a turn.
    __device__ __forceinline__ int active(int group) const { return min(teams, groups - group); }
};

// Where a tile lies: places are taken in turn.
struct turning {
    int stages, at = 0;
    u32 turn = 0;

    __device__ __forceinline__ void move(int by) {
        at += by;
        while (at >= stages) at -= stages, ++turn;
        while (at < 0) at += stages, --turn;
    }
};

// Tiles in shared memory. A turn's teams have one each, and then the next pieces of their rows. A row of a tile
// lies `pitch` from the next, an odd number of sixteens: eight of them are read at once.
template <int PARTS, bool GATED>
struct tile_ring {
    const job<PARTS, GATED> &j;
    const tiled<PARTS, GATED> &s;
    u8 *memory;
    u64 *full, *empty;
    u32 piece_bytes, pitch, stage;
    int stages;
    bool exact; // every row of a tile begins on 16 bytes and is whole sixteens

    __device__ __forceinline__ tile_ring(const job<PARTS, GATED> &of, const tiled<PARTS, GATED> &mine, u8 *room, u32 bytes,
                                         u64 *barriers)
        : j(of), s(mine), memory(room), full(barriers), empty(barriers + MOST_STAGES) {
        piece_bytes = s.split * SPAN_BYTES;
        u64 starts = s.row_bytes | piece_bytes;
#pragma unroll
        for (int p = 0; p < PARTS; ++p) starts |= (u64)j.part[p].w;
        exact = (starts & 15) == 0;
        pitch = ((piece_bytes + (exact ? 15 : 45)) / 16 | 1) * 16;
        stage = GROUP * (pitch + 1);
        stages = min(MOST_STAGES, (int)(bytes / stage));
    }
    __device__ __forceinline__ void begin() const {
        for (int i = 0; i < stages; ++i) barrier_init(full + i, 1), barrier_init(empty + i, s.split);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    // All tiles, in the order in which they are multiplied by so many rows of activations at a time.
    __device__ __forceinline__ void produce(int together) const {
        turning to{stages};
        int round = s.round(together);
#pragma unroll 1
        for (int row = 0; row < j.rows; row += together)
#pragma unroll 1
            for (int first = 0; first < s.outputs; first += round)
#pragma unroll 1
                for (int lap = 0; lap < s.laps(); ++lap)
#pragma unroll 1
                    for (int local = first; local < min(s.outputs, first + round); local += s.step())
#pragma unroll 1
                        for (int i = 0; i < s.STREAMS * s.pieces_of(lap); ++i)
                            produce_turn(to, local, i / s.pieces_of(lap), LAP * lap + i % s.pieces_of(lap));
    }
    // A tile for each team.
    __device__ __forceinline__ void produce_turn(turning &to, int local, int stream, int piece) const {
#pragma unroll 1
        for (int left = s.active(local / GROUP); left; --left, local += GROUP) {
            if (to.turn) barrier_wait(empty + to.at, (to.turn - 1) & 1);
            fetch(to.at, local, stream, piece);
            to.move(1);
        }
    }
    // A row a lane.
    __device__ __forceinline__ void fetch(int at, int local, int stream, int piece) const {
        int lane = threadIdx.x % 32, rows = min(GROUP, s.outputs - local);
        u32 offset = piece * piece_bytes, bytes = min(piece_bytes, (u32)s.row_bytes - offset);
        const u8 *end, *from = s.row(j, local + min(lane, rows - 1), stream, end) + offset;
        u8 *tile = memory + at * stage, *to = tile + lane * pitch;
        u32 moved = lane < rows ? bytes : 0, all = rows * bytes;
        if (!exact) {
            if (lane < GROUP) tile[GROUP * pitch + lane] = skew(from);
            if (lane < rows) moved = bulk_bytes(from, bytes, end), copy_rest(to, from, bytes, end);
            all = __reduce_add_sync(BS_FULL, moved);
            from -= skew(from);
        }
        if (lane == 0) barrier_expect(full + at, all);
        __syncwarp();
        if (moved) bulk_copy(to, from, moved, full + at, passing_through());
    }
    // This warp's span of a row of a tile.
    __device__ __forceinline__ const u8 *row(int at, int row) const {
        const u8 *tile = memory + at * stage;
        return tile + row * pitch + s.member * SPAN_BYTES + (exact ? 0 : tile[GROUP * pitch + row]);
    }
};
