// conv, conv_parts2, conv_parts3: causal convolutions of each channel along the rows of a sequence.
//
// A block is a share of each part's channels and SLAB rows of one sequence; a warp makes a segment of a
// row: a unit, where units are brought to length one. The ring of a sequence's last rows is read and
// renewed by the blocks of its first rows alone.
#define THREADS 512 // of l2norm, whose order of sums this is
#include "act.cuh"
#include "norm.cuh"

#define WARPS 8
#define SLAB 32

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

template <int N>
static __device__ __forceinline__ Pack<N> zeros() {
    return Pack<N>{};
}

// N channels of a part in one sequence.
template <int N>
struct Channels {
    const Part &part;
    const Sequence &s;
    float *ring;
    bool packed;

    __device__ Channels(const Part &p, const Sequence &of)
        : part(p), s(of), ring(p.ring + of.line * (of.taps - 1) * p.channels), packed(p.window.by_four(p.x)) {}

    // Row `row` of the sequence; those before its first are the ring's.
    __device__ __forceinline__ Pack<N> input(int row, int i) const {
        if (row < 0) return s.begins ? zeros<N>() : load<N>(ring + (i64)(row + s.taps - 1) * part.channels + i);
        i64 at = s.first + row;
        if (packed || N == 1) return load<N>(part.x + part.window.at(at, i));
        Pack<N> v;
#pragma unroll
        for (int j = 0; j < N; j++) v.at[j] = part.x[part.window.at(at, i + j)];
        return v;
    }

    __device__ __forceinline__ Pack<N> made(int row, int i) const {
        Pack<N> sum = zeros<N>();
#pragma unroll 1
        for (int t = 0; t < s.taps; t++) {
            Pack<N> x = input(row + t - (s.taps - 1), i);
#pragma unroll
            for (int j = 0; j < N; j++) sum.at[j] = fmaf(x.at[j], part.w[(i64)(i + j) * s.taps + t], sum.at[j]);
        }
        if (s.act == 1) return each(sum, [](float x) { return silu(x); });
        if (s.act == 2) return each(sum, [](float x) { return gelu_tanh(x); });
        return sum;
    }

    __device__ __forceinline__ float squares_from(int row, int i, int end, int step) const {
        float sum = 0.0f;
#pragma unroll 1
        for (; i < end; i += step) sum = squares(made(row, i), sum);
        return warp_sum(sum);
    }

    // The sum of a unit's squares: by a warp; or where a unit is the row as a block would sum it.
    __device__ __forceinline__ float unit_squares(int row, int from) const {
        int lane = threadIdx.x % 32, unit = part.unit;
        if (unit < part.channels) return squares_from(row, from + N * lane, from + unit, N * 32);
        float mine = 0.0f;
#pragma unroll 1
        for (int warp = 0; warp < THREADS / 32; warp++) {
            float sum = squares_from(row, N * (32 * warp + lane), unit, N * THREADS);
            if (lane == warp) mine = sum;
        }
        return warp_sum(mine);
    }

    // Channels [from, end) of a row.
    __device__ __forceinline__ void make(int row, int from, int end, const Norm &norm) const {
        float by = part.unit ? norm.factor(unit_squares(row, from)) : 1.0f;
        float *y = part.y + (s.first + row) * part.channels;
#pragma unroll 1
        for (int i = from + N * (threadIdx.x % 32); i < end; i += N * 32) {
            Pack<N> v = made(row, i);
            if (part.unit) v = each(v, [&](float x) { return norm.scaled(x, by, 0.0f); });
            store(y + i, v);
        }
    }

    // Rows move towards the front, so that none is read after it was written over.
    __device__ __forceinline__ void renew(int i) const {
        for (int t = 0; t < s.taps - 1; t++)
            store(ring + (i64)t * part.channels + i, input(s.rows + t - (s.taps - 1), i));
    }
};

// Rows [first, last) of a sequence in this block's share of a part.
template <int N>
static __device__ __noinline__ void convolve(const Part &part, const Sequence &s, float eps, int first, int last) {
    Channels<N> channels(part, s);
    Norm norm = {nullptr, part.unit, eps, 0};
    int span = part.unit ? part.unit : 32 * N, spans = (part.channels + span - 1) / span;
    int each = (spans + gridDim.x - 1) / gridDim.x, from = each * blockIdx.x, count = min(each, spans - from);
    for (int item = threadIdx.x / 32; item < count * (last - first); item += WARPS) {
        int start = span * (from + item % count);
        channels.make(first + item / count, start, min(start + span, part.channels), norm);
    }
    if (first) return;
    __syncthreads();
    int end = min(span * (from + count), part.channels);
    for (int i = span * from + N * threadIdx.x; i < end; i += N * 32 * WARPS) channels.renew(i);
}

template <int COUNT>
static __device__ __forceinline__ void conv_entry(const Part (&parts)[COUNT], const Convolution &c) {
    before_next();
    after_previous();
    int rows = c.rows / c.seqs, slab = c.taps - 1 <= SLAB ? SLAB : rows, first = slab * blockIdx.z;
    if (first >= rows) return;
    i64 start = (i64)blockIdx.y * rows;
    Sequence s = {start, c.line[blockIdx.y], rows, c.taps, c.act, c.position[start] == 0};
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        in_packs(by_four(parts[i].channels, parts[i].unit), [&](auto n) {
            convolve<decltype(n)::count>(parts[i], s, c.eps, first, min(first + slab, rows));
        });
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
