// conv, conv_parts2, conv_parts3: causal convolutions of each channel along the rows of a sequence.
//
// A block is a share of one part's channels and SLAB rows of one sequence; a warp makes a segment of a
// row: a unit, where units are brought to length one. The ring of a sequence's last rows is read and
// renewed by the blocks of its first rows alone.
#include "act.cuh"
#include "norm.cuh"

#define WARPS 4
#define SLAB 32   // rows of a block
#define SPAN 128  // channels of a segment that a lane has four of at most

struct Part {
    const float *x, *w;
    float *ring, *y;
    int channels, unit;  // unit 0: results are left as they are
    Window window;
};

// What all parts have in common: the sequence's rows of the launch, and its line of the rings.
struct Convolution {
    const int *line, *position;
    int rows, seqs, taps, act;
    float eps;
};

struct Sequence {
    i64 first, line;
    int rows, taps, act;
    bool begins;
};

// Channels of a part in one sequence, four a lane, as l2norm has them; TAPS 0 where their number is not
// known beforehand. Fours that do not lie so in memory, N 1, go value by value.
template <int N, int TAPS>
struct Channels {
    const Part &part;
    Sequence s;
    float *ring;
    float held[4][TAPS ? TAPS : 1];

    __device__ __forceinline__ explicit Channels(const Part &p) : part(p) {}

    // The taps of the channels from `i` on.
    __device__ __forceinline__ void hold(int i) {
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int t = 0; t < TAPS; t++) held[j][t] = i + j < part.channels ? part.w[(i64)(i + j) * TAPS + t] : 0.0f;
    }
    __device__ __forceinline__ void begin(const Sequence &of) {
        s = of;
        ring = part.ring + s.line * (s.taps - 1) * part.channels;
    }

    // Row `row` of the sequence; those before its first are the ring's.
    __device__ __forceinline__ Pack<4> input(int row, int i, int end) const {
        if (row < 0) {
            if (s.begins) return Pack<4>{};
            const float *from = ring + (i64)(row + s.taps - 1) * part.channels;
            return read_four<N>(i, end, [&](int at) { return load<N>(from + at); });
        }
        i64 at = s.first + row;
        return read_four<N>(i, end, [&](int c) { return load<N>(part.x + part.window.at(at, c)); });
    }

    __device__ __forceinline__ Pack<4> sum(int row, int i, int end) const {
        Pack<4> sum = {};
        if constexpr (TAPS) {
            Pack<4> x[TAPS];
#pragma unroll
            for (int t = 0; t < TAPS; t++) x[t] = input(row + t - (TAPS - 1), i, end);
#pragma unroll
            for (int t = 0; t < TAPS; t++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum.at[j] = fmaf(x[t].at[j], held[j][t], sum.at[j]);
        } else {
#pragma unroll 1
            for (int t = 0; t < s.taps; t++) {
                Pack<4> x = input(row + t - (s.taps - 1), i, end);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    if (i + j < end) sum.at[j] = fmaf(x.at[j], part.w[(i64)(i + j) * s.taps + t], sum.at[j]);
            }
        }
        return sum;
    }

    __device__ __forceinline__ Pack<4> made(int row, int i, int end) const {
        Pack<4> v = sum(row, i, end);
#pragma unroll
        for (int j = 0; j < 4; j++)
            v.at[j] = s.act == 1 ? silu(v.at[j]) : s.act == 2 ? gelu_tanh(v.at[j]) : v.at[j];
        return v;
    }

    __device__ __forceinline__ float squares_from(int row, int i, int end, int step) const {
        float sum = 0.0f;
#pragma unroll 1
        for (; i < end; i += step) sum = squares(made(row, i, end), sum);
        return warp_sum(sum);
    }

    // The sum of a unit's squares: by a warp; or a long one that is the row as a block would sum it.
    __device__ __forceinline__ float unit_squares(int row, int from, int end) const {
        int lane = threadIdx.x % 32;
        if (part.unit < part.channels || part.unit <= WARP_UNIT) return squares_from(row, from + 4 * lane, end, 4 * 32);
        float mine = 0.0f;
#pragma unroll 1
        for (int warp = 0; warp < THREADS / 32; warp++) {
            float sum = squares_from(row, 4 * (32 * warp + lane), end, 4 * THREADS);
            if (lane == warp) mine = sum;
        }
        return warp_sum(mine);
    }

    __device__ __forceinline__ void put(int row, int i, int end, Pack<4> v, const Norm &norm, float by) const {
        float *y = part.y + (s.first + row) * part.channels;
        if (part.unit)
#pragma unroll
            for (int j = 0; j < 4; j++) v.at[j] = norm.scaled(v.at[j], by, 0.0f);
        if (i < end) give_four<N>(i, end, v, [&](int at, Pack<N> some) { store(y + at, some); });
    }

    // Channels [from, end) of a row, of which no lane has more than four.
    __device__ __forceinline__ void make_one(int row, int from, int end, const Norm &norm) const {
        int i = from + 4 * (threadIdx.x % 32);
        Pack<4> v = i < end ? made(row, i, end) : Pack<4>{};
        put(row, i, end, v, norm, part.unit ? norm.factor(warp_sum(squares(v, 0.0f))) : 1.0f);
    }

    // Any number of them: made once for the sum of squares, and again.
    __device__ __forceinline__ void make_any(int row, int from, int end, const Norm &norm) const {
        float by = part.unit ? norm.factor(unit_squares(row, from, end)) : 1.0f;
#pragma unroll 1
        for (int i = from + 4 * (threadIdx.x % 32); i < end; i += 4 * 32) put(row, i, end, made(row, i, end), norm, by);
    }

    // Rows move towards the front, so that none is read after it was written over.
    __device__ __forceinline__ void renew(int i, int end) const {
        for (int t = 0; t < s.taps - 1; t++) {
            Pack<4> last = input(s.rows + t - (s.taps - 1), i, end);
            float *to = ring + (i64)t * part.channels;
            give_four<N>(i, end, last, [&](int at, Pack<N> some) { store(to + at, some); });
        }
    }
};

// Rows [first, last) of a sequence in this block's share of a part. Warps that have no segment of their
// own share others' rows.
template <int N, int TAPS>
static __device__ __forceinline__ void convolve(const Part &part, const Convolution &c, int slab) {
    Channels<N, TAPS> channels(part);
    Norm norm = {nullptr, part.unit, c.eps, 0};
    int span = part.unit ? part.unit : SPAN, spans = (part.channels + span - 1) / span, warp = threadIdx.x / 32;
    int each = (spans + gridDim.x - 1) / gridDim.x, from = each * blockIdx.x, count = min(each, spans - from);
    int together = count > 0 && count < WARPS ? WARPS / count : 1, lane = 4 * (threadIdx.x % 32);
    if (count <= 0) return;
    channels.hold(span * (from + warp % count) + lane);
    before_next();
    after_previous();
    int rows = c.rows / c.seqs, length = c.taps - 1 <= SLAB ? SLAB : rows, first = slab * length;
    if (first >= rows) return;
    i64 start = (i64)blockIdx.y * rows;
    channels.begin({start, c.line[blockIdx.y], rows, c.taps, c.act, c.position[start] == 0});
    int last = min(first + length, rows);
    for (int segment = warp; segment < count * together; segment += WARPS) {
        int begin = span * (from + segment % count), end = min(begin + span, part.channels);
        if (segment >= WARPS) channels.hold(begin + lane);
#pragma unroll 1
        for (int row = first + segment / count; row < last; row += together)
            if (span <= SPAN) channels.make_one(row, begin, end, norm);
            else channels.make_any(row, begin, end, norm);
    }
    if (first) return;
    __syncthreads();
    int end = min(span * (from + count), part.channels);
    for (int i = span * from + 4 * threadIdx.x; i < end; i += 4 * 32 * WARPS) channels.renew(i, end);
}

// Grid: channels of the first part, sequences, rows of each part.
template <int COUNT>
static __device__ __forceinline__ void conv_entry(const Part (&parts)[COUNT], const Convolution &c) {
    Part part = parts[0];
#pragma unroll
    for (int i = 1; i < COUNT; i++)
        if (blockIdx.z % COUNT == i) part = parts[i];
    int slab = blockIdx.z / COUNT;
    bool fours = by_four(part.channels, part.unit) && part.window.by_four(part.x);
    if (fours && c.taps == 4 && part.unit <= SPAN) convolve<4, 4>(part, c, slab);
    else if (fours) convolve<4, 0>(part, c, slab);
    else convolve<1, 0>(part, c, slab);
}

#define IN(i) const float *x##i, const float *w##i, float *ring##i
#define WHERE const int *line, const int *position
#define SIZES int rows, int seqs
#define PART(i) {x##i, w##i, ring##i, y##i, channels##i, unit##i, WINDOW_OF(x##i)}

BS_KERNEL(32 * WARPS)
conv(IN(), WHERE, float *y, SIZES, int channels, int taps, int act, int unit, float eps, WINDOW(x)) {
    conv_entry<1>({PART()}, {line, position, rows, seqs, taps, act, eps});
}

BS_KERNEL(32 * WARPS)
conv_parts2(IN(0), IN(1), WHERE, float *y0, float *y1, SIZES, int channels0, int channels1, int taps, int act,
            int unit0, int unit1, float eps, WINDOW(x0), WINDOW(x1)) {
    conv_entry<2>({PART(0), PART(1)}, {line, position, rows, seqs, taps, act, eps});
}

BS_KERNEL(32 * WARPS)
conv_parts3(IN(0), IN(1), IN(2), WHERE, float *y0, float *y1, float *y2, SIZES, int channels0, int channels1,
            int channels2, int taps, int act, int unit0, int unit1, int unit2, float eps, WINDOW(x0),
            WINDOW(x1), WINDOW(x2)) {
    conv_entry<3>({PART(0), PART(1), PART(2)}, {line, position, rows, seqs, taps, act, eps});
}
