// Attention of one row over bfloat16 keys and values on the matrix units: what a warp does.
//
// Up to eight heads share each row of keys. A query is the sum of two bfloat16, one in rows 0 to 7 of
// the matrix units' operand and the other in rows 8 to 15, which eight heads would leave empty; a weight
// of the values is two as well, multiplied one after the other. Both keep 16 bits that way.
//
// Positions go by in tiles of 16. A warp has tiles of its own and a ring of shared memory that it fills
// STAGES tiles ahead: it waits for nobody before its sums are whole. Maxima are in units of log2.
#pragma once
#include "attend_tile.cuh"
#include "mma.cuh"

#define LOG2_E 1.44269504f

// Makes the compiler have x by now, and not find it again later.
template <class T>
static __device__ __forceinline__ void settle(T &x) {
    static_assert(sizeof(T) == 4, "a word");
    asm volatile("" : "+r"(*(u32 *)&x));
}

// 2 to the x; what is too small for a float of full precision is 0.
static __device__ __forceinline__ float exp2_flush(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// What sums relative to `own` count where the top is `top`.
static __device__ __forceinline__ float shrunk_2(float own, float top) {
    return own == top ? 1.0f : exp2_flush(own - top);
}

// x as a bfloat16, and what is left of it.
static __device__ __forceinline__ void halve(float x, float y, u32 &high, u32 &low) {
    high = pack_bf16(x, y);
    low = pack_bf16(x - __uint_as_float(high << 16), y - __uint_as_float(high & 0xffff0000u));
}

// Queries as they are given: thread (g, t) has of head g values 8 i + 2t and the next. Who has none has those
// of the first.
template <int D>
struct Floats {
    float2 at[D / 8];

    // Of `count` heads, one every `pitch` floats.
    __device__ __forceinline__ void read(const float *q, int pitch, int count) {
        int g = threadIdx.x % 32 / 4;
        q += (g < count ? g : 0) * pitch + 2 * (threadIdx.x % 4);
#pragma unroll
        for (int i = 0; i < D / 8; i++) at[i] = *(const float2 *)(q + 8 * i);
    }
};

// Thread (g, t) has of head g, at depth step s, values 16 s + 2t, the next, and those 8 behind them.
template <int D>
struct Queries {
    u32 at[D / 16][4];

    __device__ __forceinline__ void set(const Floats<D> &q, int count) {
        bool own = threadIdx.x % 32 / 4 < count;
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            u32 &high = at[i / 2][i % 2 * 2], &low = at[i / 2][i % 2 * 2 + 1];
            halve(own ? q.at[i].x : 0.0f, own ? q.at[i].y : 0.0f, high, low);
        }
    }

    // Of head g: products with positions 2t, 2t + 1, 2t + 8 and 2t + 9 of a tile.
    __device__ __forceinline__ void multiply(const Blocks<D> &keys, float (&score)[4]) const {
        float sums[2][2][4] = {};
#pragma unroll
        for (int s = 0; s < D / 16; s++) {
            u32 k[4];
            keys.read(s, k);
            mma_16x8x16(sums[s % 2][0], at[s], k[0], k[1]);
            mma_16x8x16(sums[s % 2][1], at[s], k[2], k[3]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float(&even)[4] = sums[0][i / 2], (&odd)[4] = sums[1][i / 2];
            score[i] = (even[i % 2] + odd[i % 2]) + (even[2 + i % 2] + odd[2 + i % 2]);
        }
    }
};

// How products become scores in units of log2.
struct Scoring {
    float by, most, curve;  // most: of a cap, or 0

    __device__ __forceinline__ explicit Scoring(const Attention<bf16> &a) {
        by = a.scale * LOG2_E;
        most = a.softcap > 0.0f ? a.softcap * LOG2_E : 0.0f;
        // tanh x is 1 - 2 / (1 + e^2x)
        curve = a.softcap > 0.0f ? __fdividef(2.0f * a.scale, a.softcap) * LOG2_E : 0.0f;
        settle(curve);
    }
    __device__ __forceinline__ void apply(float (&score)[4]) const {
        if (most == 0.0f) {
#pragma unroll
            for (int i = 0; i < 4; i++) score[i] *= by;
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++)
                score[i] = most - __fdividef(2.0f * most, 1.0f + exp2_flush(score[i] * curve));
        }
    }
};

// The weights of a tile's positions for head g, each the sum of two bfloat16.
struct Weights {
    u32 high[2], low[2];
};

#define SLICE (D + 4)  // floats from a head's values to the next, in different banks

// What a warp has of heads 2t and 2t + 1: values 16 m + g and 16 m + g + 8 in sums [m][..]; of head g the
// maximum, and a quarter of the sum.
template <int D>
struct Running {
    float acc[D / 16][4] = {};
    float top = -BS_INFINITY, sum = 0.0f;

    // `seen`: which of a thread's positions count.
    __device__ __forceinline__ Weights weigh(const bool (&seen)[4], float (&score)[4]) {
        float highest = top, weight[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            score[i] = seen[i] ? score[i] : -BS_INFINITY;
            highest = fmaxf(highest, score[i]);
        }
        highest = fmaxf(highest, __shfl_xor_sync(BS_FULL, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(BS_FULL, highest, 2));
#pragma unroll
        for (int i = 0; i < 4; i++) weight[i] = seen[i] ? exp2_flush(score[i] - highest) : 0.0f;
        if (__any_sync(BS_FULL, top != highest)) {
            float by = shrunk_2(top, highest);
            top = highest;
            sum *= by;
            scale(by);
        }
        sum += (weight[0] + weight[1]) + (weight[2] + weight[3]);
        Weights halves;
#pragma unroll
        for (int i = 0; i < 2; i++) halve(weight[2 * i], weight[2 * i + 1], halves.high[i], halves.low[i]);
        return halves;
    }

    // Values by what the threads of head g say for it.
    __device__ __forceinline__ void scale(float by) {
        float even = __shfl_sync(BS_FULL, by, threadIdx.x % 4 * 8);
        float odd = __shfl_sync(BS_FULL, by, threadIdx.x % 4 * 8 + 4);
#pragma unroll
        for (int m = 0; m < D / 16; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) acc[m][i] *= i % 2 ? odd : even;
    }

    __device__ __forceinline__ void add(const Weights &weights, const Blocks<D> &values) {
#pragma unroll
        for (int m = 0; m < D / 16; m++) {
            u32 v[4];
            values.read_turned(m, v);
            mma_16x8x16(acc[m], v, weights.high[0], weights.high[1]);
            mma_16x8x16(acc[m], v, weights.low[0], weights.low[1]);
        }
    }

    // The warp's values, relative to `highest` of head g, as [HEADS][SLICE].
    __device__ __forceinline__ void lay(float *slice, float highest) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        scale(shrunk_2(top, highest));
        float *values = slice + 2 * t * SLICE + g;
#pragma unroll
        for (int m = 0; m < D / 16; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) values[i % 2 * SLICE + 16 * m + i / 2 * 8] = acc[m][i];
    }

    // Of head g: a quarter's sums put together.
    __device__ __forceinline__ float whole_sum() const {
        float whole = sum + __shfl_xor_sync(BS_FULL, sum, 1);
        return whole + __shfl_xor_sync(BS_FULL, whole, 2);
    }
};

// Where a position lies: the page, and the place in it.
struct Spot {
    int page, rest;
};

// Pages are mostly a power of two long; else positions are below 2^24.
struct Pages {
    const int *of;
    int page, shift;  // shift -1: no power of two
    float inverse;

    __device__ __forceinline__ Pages(const int *of, int page)
        : of(of),
          page(page),
          shift((page & (page - 1)) == 0 ? 31 - __clz(page) : -1),
          inverse(__frcp_rn((float)page)) {
        settle(shift);
        settle(inverse);
    }
    __device__ __forceinline__ Spot find(int t) const {
        if (shift >= 0) return Spot{t >> shift, t & (page - 1)};
        int index = (int)((float)t * inverse), rest = t - index * page;
        int off = (rest >= page) - (rest < 0);
        return Spot{index + off, rest - off * page};
    }
};

// A warp's tiles, `step` apart. Half a warp knows where the rows of one lie and the other half those of the
// next; pages are looked up two tiles before they are asked for.
template <int D>
struct Stream {
    Pages pages;
    const u8 *keys, *values;  // this thread's piece of row 0
    int pitch;                // bytes from row to row
    int step, last = -1;
    u32 ring;
    int page, rest, row, next_page, next_rest, odd = 0;

    static constexpr u32 STAGE = 2 * TILE_BYTES<D>;

    __device__ __forceinline__ Stream(const Attention<bf16> &a, int group, int step, u32 ring)
        : pages(a.k.pages, a.k.page), step(step), ring(ring) {
        int at = group * D + threadIdx.x % (D / 8) * 8;
        keys = (const u8 *)(a.k.x + at);
        values = (const u8 *)(a.v.x + at);
        pitch = 2 * a.groups * D;
    }

    // This thread's position of the tile from `tile` on. Positions nobody sees stand for the nearest that is
    // seen, so that their values are numbers where the others are.
    __device__ __forceinline__ int position(Span span, int tile) const {
        int lane = threadIdx.x % 32;
        return min(max((tile + lane / TILE * step) * TILE + lane % TILE, span.first), span.last);
    }

    __device__ __forceinline__ void find(Span span, int tile, int &page, int &rest) const {
        Spot spot = pages.find(position(span, tile));
        page = pages.of[spot.page];
        rest = spot.rest;
    }

    // Looks up where the first tiles from `tile` on lie.
    __device__ __forceinline__ void look(Span span, int tile) {
        last = span.last < 0 ? -1 : span.last / TILE;
        if (tile > last) return;
        find(span, tile, page, rest);
        find(span, tile + 2 * step, next_page, next_rest);
    }

    // Sends for STAGES of them.
    __device__ __forceinline__ void fill(Span span, int tile) {
        if (tile > last) return;
        row = page * pages.page + rest;
#pragma unroll 1
        for (int i = 0; i < STAGES; i++) send(span, tile + i * step, ring + i * STAGE);
    }

    __device__ __forceinline__ void send(Span span, int tile, u32 to) {
        if (tile <= last) copy_tiles<D>(keys, values, pitch, row, odd * TILE, to);
        copies_end();
        if (odd) {
            row = next_page * pages.page + next_rest;
            find(span, tile + 3 * step, next_page, next_rest);
        }
        odd ^= 1;
    }

    // `show` is given each tile, in order, and where its keys lie; its values lie behind them.
    template <class F>
    __device__ __forceinline__ void run(Span span, int tile, F show) {
#pragma unroll 1
        for (u32 stage = 0; tile <= last; tile += step, stage = stage + 1 == STAGES ? 0 : stage + 1) {
            u32 here = ring + stage * STAGE;
            copies_wait<STAGES - 1>();
            __syncwarp();
            show(tile, here);
            __syncwarp();
            send(span, tile + STAGES * step, here);
        }
        copies_wait<0>();
    }
};
