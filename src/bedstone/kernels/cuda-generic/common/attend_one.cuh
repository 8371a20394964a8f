// Attention of one row over bfloat16 keys and values on the matrix units.
//
// Up to eight heads share each row of keys. A query is the sum of two bfloat16, one in rows 0 to 7 of
// the matrix units' operand and the other in rows 8 to 15, which eight heads would leave empty; so are
// the weights of the values. Both keep 16 bits that way, and keys and values are read straight into
// registers as the units want them: the order of a product's depth is free.
//
// Positions go by in tiles of 16, a warp each: tile i belongs to block i % blocks of the cluster. Where
// values are wider than 128 several warps take a tile, each a part of its values.
#pragma once
#include "attend_merge.cuh"
#include "mma.cuh"

#define LOG2_E 1.44269504f

template <int D>
struct OneShape {
    static constexpr int VALUES = D < 128 ? D : 128;  // of a warp
    static constexpr int PARTS = D / VALUES, STREAMS = ATTEND_WARPS / PARTS;
    static constexpr int DEPTHS = D / 16, QUADS = D / 32, OCTETS = VALUES / 64;
};

struct Streams {
    float top[ATTEND_WARPS][HEADS], sum[ATTEND_WARPS][HEADS];
};

// x as a bfloat16, and what is left of it.
static __device__ __forceinline__ void halve(float x, float y, u32 &high, u32 &low) {
    high = pack_bf16(x, y);
    low = pack_bf16(x - __uint_as_float(high << 16), y - __uint_as_float(high & 0xffff0000u));
}

// Thread (g, t) of depth step s has values 32 (s / 2) + 8t + 4 (s % 2) and three more of head g.
template <int D>
static __device__ __forceinline__ void halve_queries(const Attention<bf16> &a, const Heads &heads, uint4 *queries) {
    for (int i = threadIdx.x; i < OneShape<D>::DEPTHS * 32; i += ATTEND_THREADS) {
        int step = i / 32, g = i % 32 / 4, t = i % 4;
        Pack<4> q = {};
        if (g < heads.count) {
            i64 at = ((i64)heads.row * a.heads + heads.first + g) * D;
            q = load<4>(a.q + at + step / 2 * 32 + t * 8 + step % 2 * 4);
        }
        u32 high[2], low[2];
        halve(q.at[0], q.at[1], high[0], low[0]);
        halve(q.at[2], q.at[3], high[1], low[1]);
        queries[i] = make_uint4(high[0], low[0], high[1], low[1]);
    }
}

// Rows of a tile's positions, one in each thread of half a warp; positions nobody sees stand for the
// nearest that is seen, so that their values are numbers where the others are.
static __device__ __forceinline__ int row_in_tile(const Lines<bf16> &lines, Span span, int tile) {
    int t = min(max(tile * 16 + (int)threadIdx.x % 16, span.first), span.last);
    return (int)lines.row(t);
}

template <int D>
struct Keys {
    uint4 at[2][OneShape<D>::QUADS];

    // Positions g and g + 8 of a tile.
    __device__ __forceinline__ void read(const Lines<bf16> &lines, int group, int own_row) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < 2; n++) {
            i64 row = __shfl_sync(BS_FULL, own_row, g + 8 * n);
            const uint4 *key = (const uint4 *)(lines.x + row * lines.pitch + group * lines.unit) + t;
#pragma unroll
            for (int i = 0; i < OneShape<D>::QUADS; i++) at[n][i] = key[4 * i];
        }
    }

    // Of each head g: products with positions 2t and 2t + 1 of each half of the tile.
    __device__ __forceinline__ void multiply(const uint4 *queries, float (&score)[4]) const {
        float sum[2][4] = {};
#pragma unroll
        for (int s = 0; s < OneShape<D>::DEPTHS; s++) {
            uint4 q = queries[s * 32 + threadIdx.x % 32];
            const u32 words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int n = 0; n < 2; n++) {
                uint4 k = at[n][s / 2];
                mma_16x8x16(sum[n], words, s % 2 ? k.z : k.x, s % 2 ? k.w : k.y);
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) score[i] = sum[i / 2][i % 2] + sum[i / 2][2 + i % 2];
    }
};

template <int D>
struct Values {
    uint4 at[4][OneShape<D>::OCTETS];

    // Positions 2t, 2t + 1, 2t + 8, 2t + 9; of each 64 values the eight from 8g on.
    __device__ __forceinline__ void read(const Lines<bf16> &lines, int group, int first, int own_row) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < 4; n++) {
            i64 row = __shfl_sync(BS_FULL, own_row, 2 * t + n / 2 * 8 + n % 2);
            const uint4 *value = (const uint4 *)(lines.x + row * lines.pitch + group * lines.unit + first) + g;
#pragma unroll
            for (int i = 0; i < OneShape<D>::OCTETS; i++) at[n][i] = value[8 * i];
        }
    }

    __device__ __forceinline__ u32 word(int n, int octet, int i) const {
        const uint4 &v = at[n][octet];
        return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
    }
};

// What a warp has of each head g: values 64 o + 8 n + j in sums [8 o + j][..], columns n.
template <int D>
struct Running {
    float acc[8 * OneShape<D>::OCTETS][4];
    float top, sum;

    __device__ __forceinline__ void weigh(const Attention<bf16> &a, Span span, int tile, float (&score)[4],
                                          u32 (&weights)[4]) {
        float highest = top, weight[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            score[i] = span.has(position(tile, i)) ? a.capped(score[i]) : -BS_INFINITY;
            highest = fmaxf(highest, score[i]);
        }
        highest = fmaxf(highest, __shfl_xor_sync(BS_FULL, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(BS_FULL, highest, 2));
#pragma unroll
        for (int i = 0; i < 4; i++)
            weight[i] = span.has(position(tile, i)) ? exp2_fast((score[i] - highest) * LOG2_E) : 0.0f;
        shrink(highest);
        sum += (weight[0] + weight[1]) + (weight[2] + weight[3]);
        halve(weight[0], weight[1], weights[0], weights[1]);
        halve(weight[2], weight[3], weights[2], weights[3]);
    }

    static __device__ __forceinline__ int position(int tile, int i) {
        return tile * 16 + 2 * (threadIdx.x % 4) + i / 2 * 8 + i % 2;
    }

    __device__ __forceinline__ void shrink(float highest) {
        float by = top == highest ? 1.0f : exp2_fast((top - highest) * LOG2_E);
        top = highest;
        sum *= by;
        // both halves of a weight belong to head g
#pragma unroll
        for (int n = 0; n < 8 * OneShape<D>::OCTETS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) acc[n][i] *= by;
    }

    __device__ __forceinline__ void add(const u32 (&weights)[4], const Values<D> &v) {
#pragma unroll
        for (int o = 0; o < OneShape<D>::OCTETS; o++)
#pragma unroll
            for (int j = 0; j < 8; j++) {
                u32 pick = j % 2 ? 0x7632 : 0x5410;
                u32 b0 = __byte_perm(v.word(0, o, j / 2), v.word(1, o, j / 2), pick);
                u32 b1 = __byte_perm(v.word(2, o, j / 2), v.word(3, o, j / 2), pick);
                mma_16x8x16(acc[8 * o + j], weights, b0, b1);
            }
    }

    // The warp's values, relative to `highest`, as [HEADS][D] from `first` on.
    __device__ __forceinline__ void lay(float *slice, float highest, int first) const {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        float by = shrunk(top, highest);
        float *values = slice + g * D + first + 16 * t;
#pragma unroll
        for (int o = 0; o < OneShape<D>::OCTETS; o++)
#pragma unroll
            for (int i = 0; i < 16; i++) {
                const float(&own)[4] = acc[8 * o + i % 8];
                values[64 * o + i] = (own[i / 8] + own[2 + i / 8]) * by;
            }
    }
};

// A stream's tiles of positions from `tile` on: the keys and the values of one are on their way while
// those before them are multiplied, and the rows of the next are looked up.
template <int D>
struct Stream {
    const Attention<bf16> &a;
    const Heads &heads;
    int tile, step, first, row, next_row;
    Keys<D> keys;
    Values<D> values;

    __device__ __forceinline__ bool has(int which) const { return which * 16 <= heads.span.last; }

    __device__ __forceinline__ void start() {
        if (!has(tile)) return;
        row = row_in_tile(a.k, heads.span, tile);
        keys.read(a.k, heads.group, row);
        values.read(a.v, heads.group, first, row);
        next_row = row_in_tile(a.k, heads.span, tile + step);
    }

    __device__ __forceinline__ void run(const uint4 *queries, Running<D> &own) {
        for (; has(tile); tile += step) {
            bool more = has(tile + step);
            float score[4];
            u32 weights[4];
            keys.multiply(queries, score);
            row = next_row;
            if (more) {
                keys.read(a.k, heads.group, row);
                next_row = row_in_tile(a.k, heads.span, tile + 2 * step);
            }
            own.weigh(a, heads.span, tile, score, weights);
            own.add(weights, values);
            if (more) values.read(a.v, heads.group, first, row);
        }
    }
};

// The streams of a block put together, relative to the highest of their tops, and given to the cluster.
template <int D>
static __device__ __forceinline__ void fold_streams(const Heads &heads, const Running<D> &own, int first,
                                                    Streams &streams, float *slices, Inbox &inbox, int pitch,
                                                    State &state) {
    typedef OneShape<D> Shape;
    int stream = threadIdx.x / 32 / Shape::PARTS, g = threadIdx.x % 32 / 4;
    float sum = own.sum + __shfl_xor_sync(BS_FULL, own.sum, 1);
    sum += __shfl_xor_sync(BS_FULL, sum, 2);
    streams.top[stream][g] = own.top;
    streams.sum[stream][g] = sum;
    __syncthreads();
    float highest = -BS_INFINITY;
#pragma unroll
    for (int i = 0; i < Shape::STREAMS; i++) highest = fmaxf(highest, streams.top[i][g]);
    own.lay(slices + stream * HEADS * D, highest, first);
    if (threadIdx.x % 4 == 0 && threadIdx.x < 32) {
        float total = 0.0f;
        for (int i = 0; i < Shape::STREAMS; i++)
            total = fmaf(streams.sum[i][g], shrunk(streams.top[i][g], highest), total);
        state.top[g] = highest;
        state.sum[g] = total;
    }
    __syncthreads();
    cluster_wait();
    int blocks = cluster_size();
    for (int i = threadIdx.x; i < heads.count * D; i += ATTEND_THREADS) {
        float total = 0.0f;
#pragma unroll
        for (int s = 0; s < Shape::STREAMS; s++) total += slices[s * HEADS * D + i];
        inbox.give(i, total, pitch, blocks);
    }
    inbox.give_states(state, blocks);
}

template <int D>
static __device__ __forceinline__ void attend_one_lot(const Attention<bf16> &a, const Heads &heads) {
    typedef OneShape<D> Shape;
    extern __shared__ float4 memory[];
    __shared__ Streams streams;
    __shared__ State state;
    __shared__ Inbox inbox;
    // every block is here, and done with what others gave it before
    cluster_arrive();
    uint4 *queries = (uint4 *)memory;
    float *slices = (float *)(queries + Shape::DEPTHS * 32);
    if (threadIdx.x == 0) inbox.values = slices + Shape::STREAMS * HEADS * D;
    int pitch = (HEADS * D / 32 + cluster_size() - 1) / cluster_size() * 32;
    int warp = threadIdx.x / 32, stream = warp / Shape::PARTS, first = warp % Shape::PARTS * Shape::VALUES;
    int step = cluster_size() * Shape::STREAMS, tile = heads.span.first / 16;
    tile += (stream * cluster_size() + cluster_rank() - tile % step + step) % step;
    Running<D> own = {};
    own.top = -BS_INFINITY;
    Stream<D> tiles = {a, heads, tile, step, first};
    tiles.start();
    halve_queries<D>(a, heads, queries);
    __syncthreads();
    tiles.run(queries, own);
    fold_streams<D>(heads, own, first, streams, slices, inbox, pitch, state);
    cluster_sync();
    merge_inbox(a, inbox, pitch, heads);
}

template <int D>
static __device__ __forceinline__ void attend_one(const Attention<bf16> &a) {
    each_lot(a, [&](const Heads &heads) { attend_one_lot<D>(a, heads); });
}
