// Which logits of a row take part in a draw, found without sorting it.
//
// A logit weighs e^((logit - largest) / temperature) in steps of 2^-30. Weights are integers, so their sums are
// exact whatever the order, and so is every comparison with one.
#pragma once
#include "row.cuh"

#define ONE (1 << 30)  // what the largest logit weighs
#define DIGIT 11       // bits of a digit of a key, at most
#define BINS (1 << DIGIT)

struct Scale {
    float largest, temperature;
};

static __device__ __forceinline__ u32 weight(float x, Scale s) {
    return x > LEFT_OUT ? (u32)(expf((x - s.largest) / s.temperature) * (float)ONE) : 0u;
}

// What takes part: logits above `value`, and of those equal to it the first `equals` of this warp's chunk.
struct Cut {
    float value;
    u32 equals;
};

// Whether a value of each lane takes part; `seen` counts the equals that the warp has met.
static __device__ __forceinline__ bool taken(float x, bool there, Cut c, u32 &seen) {
    u32 same = __ballot_sync(BS_FULL, there && x == c.value), before = (1u << lane()) - 1;
    bool kept = there && (x > c.value || (x == c.value && seen + __popc(same & before) < c.equals));
    seen += __popc(same);
    return kept;
}

// f(weight, index) for what takes part and weighs `least`, weight 0 for the other lanes.
template <class F>
static __device__ __forceinline__ void each_taken(Row row, Scale s, Cut c, u32 least, F f) {
    u32 seen = 0;
    each(row, [&](float x, int at, bool there) {
        u32 w = taken(x, there, c, seen) ? weight(x, s) : 0;
        f(w >= least ? w : 0, at);
    });
}

// The weight of this warp's part.
static __device__ __noinline__ u64 weigh(Row row, Scale s, Cut c, u32 least) {
    u64 sum = 0;
    each_taken(row, s, c, least, [&](u32 w, int) { sum += w; });
    return of_warp(sum);
}

// A coarse place in the order of logits, the largest first: 32 a unit. Most logits are told apart by it.
static __device__ __forceinline__ u32 coarse(float x, Scale s) {
    return (u32)fminf((s.largest - x) * 32.0f, (float)(BINS - 1));
}

// Integers in the order of the floats; the two zeros are one.
static __device__ __forceinline__ u32 key_of(float x) {
    u32 bits = __float_as_uint(x + 0.0f);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

static __device__ __forceinline__ float of_key(u32 key) {
    return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : 0xffffffffu));
}

// What logits are counted by: one each, or their weights.
enum Measure { COUNT, WEIGHT };

// What logits come to by some digit. A sum of weights has more bits than can be added at once in shared memory:
// its low half and its high half are sums of their own.
struct Bins {
    u32 low[BINS], high[BINS];
};

static __device__ __forceinline__ void add(Bins &bins, u32 place, u32 amount) {
    atomicAdd(&bins.low[place], amount & 0x7fff);
    if (amount >> 15) atomicAdd(&bins.high[place], amount >> 15);
}

// The digit, counted from the largest down, where what has come together reaches `wanted`; that becomes what is
// left to reach there. BINS where all of it does not.
static __device__ __noinline__ u32 reached(Bins &bins, u64 &wanted) {
    __shared__ u64 sums[WARPS];
    __shared__ u64 left;
    __shared__ u32 place;
    constexpr int OWN = BINS / THREADS;
    cluster_sync();
    u64 own[OWN], sum = 0;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        own[i] = 0;
        for (int b = 0; b < cluster_size(); b++) {
            const Bins *there = of_block(&bins, b);
            int at = OWN * threadIdx.x + i;
            own[i] += ((u64)there->high[at] << 15) + there->low[at];
        }
        sum += own[i];
    }
    u64 before = sum;
#pragma unroll
    for (int step = 1; step < 32; step <<= 1) {
        u64 other = __shfl_up_sync(BS_FULL, before, step);
        if (lane() >= step) before += other;
    }
    if (lane() == 31) sums[warp()] = before;
    if (threadIdx.x == 0) place = BINS;
    __syncthreads();
    before -= sum;
    for (int i = 0; i < warp(); i++) before += sums[i];
    if (before < wanted && wanted <= before + sum) {
        int i = 0;
        for (; before + own[i] < wanted; i++) before += own[i];
        place = OWN * threadIdx.x + i;
        left = wanted - before;
    }
    __syncthreads();
    u32 found = place;
    if (found < BINS) wanted = left;
    // nobody counts anew before all blocks have read
    cluster_sync();
    return found;
}

static __device__ __forceinline__ void clear(Bins &bins) {
    for (int i = threadIdx.x; i < BINS; i += THREADS) bins.low[i] = bins.high[i] = 0;
    __syncthreads();
}

// The largest value from which on logits come to `wanted`, which becomes what is left for it; LEFT_OUT where all of
// them do not come to as much.
static __device__ __forceinline__ float reaches(Row row, Scale s, Measure by, u64 &wanted, float least, Bins &bins) {
    auto amount = [&](float x) { return by == WEIGHT ? weight(x, s) : 1u; };
    clear(bins);
    each(row, [&](float x, int, bool there) {
        if (there && x > LEFT_OUT && x >= least) add(bins, coarse(x, s), amount(x));
    });
    u32 about = reached(bins, wanted);
    if (about == BINS) return LEFT_OUT;
    u32 prefix = 0;
#pragma unroll 1
    for (int above = 32, shift; above > 0; above = shift) {
        int width = min(DIGIT, above);
        shift = above - width;
        clear(bins);
        each(row, [&](float x, int, bool there) {
            u32 key = key_of(x), last = (1u << width) - 1;
            if (there && x > LEFT_OUT && x >= least && coarse(x, s) == about && (u64)key >> above == prefix)
                add(bins, last - (key >> shift & last), amount(x));
        });
        prefix = prefix << width | ((1u << width) - 1 - reached(bins, wanted));
    }
    return of_key(prefix);
}

// The cut that leaves the fewest of the largest logits that come to `wanted`, none below `least`.
static __device__ __noinline__ Cut cut_at(Row row, Scale s, Measure by, u64 wanted, float least, Bins &bins,
                                             int &turn) {
    __shared__ u32 warps[WARPS];
    float value = reaches(row, s, by, wanted, least, bins);
    if (value <= LEFT_OUT) return Cut{LEFT_OUT, 0};
    u64 weighs = by == WEIGHT ? weight(value, s) : 1;
    u64 equals = weighs ? (wanted + weighs - 1) / weighs : 0;
    u32 own = 0;
    each(row, [&](float x, int, bool there) { own += __popc(__ballot_sync(BS_FULL, there && x == value)); });
    if (lane() == 0) warps[warp()] = own;
    __syncthreads();
    u64 block = 0, before = 0;
    for (int i = 0; i < WARPS; i++) {
        if (i == warp()) before = block;
        block += warps[i];
    }
    Blocks<u64> all = told(block, turn);
#pragma unroll
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (i < cluster_rank()) before += all.of[i];
    u64 left = equals > before ? equals - before : 0;
    return Cut{value, (u32)(left < own ? left : own)};
}
