// linear, parts2 to parts4, glu of float activations: matrix products of one weight format.
//
// The outputs of a launch, whatever matrix they are of, are dealt evenly over its blocks, two a
// multiprocessor or, where that is plenty, one, beside which the next launch's comes to lie. Warps work
// alone: each has a ring of its own, that it fills from before the activations exist, and keeps the
// activations of its slice of a row. Where a row is too long for one warp several share it; what they make
// of it stands in shared memory until the block's outputs are all there. Activations in eight bits are the
// whole block's, and so is the ring that one more warp fills.
#include "act.cuh"
#include "slices.cuh"
#include "tiles.cuh"

// --- results ---------------------------------------------------------------------------------

template <int PARTS>
static __device__ __forceinline__ void put(const job<PARTS, false> &j, int output, int row, float value) {
    int p = j.part_of(output);
    matrix part = j.part[0];
#pragma unroll
    for (int i = 1; i < PARTS; ++i)
        if (p == i) part = j.part[i];
    i64 at = (i64)row * part.n + output;
    if (part.bias) value += part.bias[output];
    if (j.add) value += j.add[at];
    if (j.cap > 0) value = __fmul_rn(j.cap, tanhf(__fdiv_rn(value, j.cap)));
    if (!j.table || p != PARTS - 1) {
        part.y[at] = value;
    } else if (int slot = j.slot[row]; slot >= 0) {
        j.table[(i64)slot * part.n + output] = from_f32<cache_t>(value);
    }
}

template <int PARTS>
static __device__ __forceinline__ void put_gated(const job<PARTS, true> &j, int output, int row, float value) {
    i64 at = (i64)row * j.part[0].n + output;
    if (j.part[0].y) j.part[0].y[at] = value;
    if (j.codes) j.codes[at] = from_f32<code_t>(value);
}

// Where the products of a round stand: those of an output side by side, of its team's members and streams.
template <class S>
struct placed {
    const S &s;
    float *sums;
    int first, end;

    __device__ __forceinline__ float *at(int row, int local, int stream) const {
        return sums + ((row * (end - first) + local - first) * s.STREAMS + stream) * s.split;
    }
};

static __device__ __forceinline__ float added(const float *sums, int split) {
    float sum = sums[0];
#pragma unroll 1
    for (int m = 1; m < split; ++m) sum += sums[m];
    return sum;
}

// A round's outputs, of `rows` rows of activations from `row`: by all threads of the block.
template <int PARTS, bool GATED, class S>
static __device__ __forceinline__ void put_all(const job<PARTS, GATED> &j, const placed<S> &from, int row, int rows) {
    int n = from.end - from.first, split = from.s.split;
#pragma unroll 1
    for (int i = threadIdx.x; i < n * rows; i += THREADS) {
        int r = i / n, local = from.first + i % n;
        float value = added(from.at(r, local, 0), split);
        if constexpr (GATED)
            put_gated(j, from.s.first + local, row + r, gated(value, added(from.at(r, local, 1), split), j.act));
        else
            put(j, from.s.first + local, row + r, value);
    }
}

// --- the launch ------------------------------------------------------------------------------

// One slice by all rows of activations that X has.
template <int N, class X, class Weights>
static __device__ __forceinline__ void multiply_one(const X &x, Weights &w, int local, int stream, float *sum) {
    float made[X::ROWS];
    x.template multiply<N>(w.arrived(local, stream), made);
    w.done();
#pragma unroll
    for (int r = 0; r < X::ROWS; ++r) sum[r] = made[r];
}

// The slices of a round: two at a time are added up over the warp, of one output's streams or of two outputs.
template <int N, class X, class S, class Weights>
static __device__ __forceinline__ void multiply_round(const X &x, const placed<S> &to, Weights &w, int rows) {
    constexpr int V = X::ROWS, STREAMS = S::STREAMS;
    int lane = threadIdx.x % 32, row = lane / (32 / V);
#pragma unroll 1
    for (int local = to.first + to.s.team; local < to.end; local += to.s.teams)
#pragma unroll 1
        for (int stream = 0; stream < STREAMS; ++stream) {
            float sum[V];
            multiply_one<N>(x, w, local, stream, sum);
            float whole = warp_sums<V>(sum);
            if (lane % (32 / V) == 0 && row < rows) to.at(row, local, stream)[to.s.member] = whole;
        }
}

template <int N, class X, class S, class Weights>
static __device__ __forceinline__ void multiply_slots(const X &x, const placed<S> &to, Weights &w, int rows) {
    if (N == X::KNOWN || x.slots == N) return multiply_round<N>(x, to, w, rows);
    if constexpr (N < X::KNOWN) multiply_slots<N + 1>(x, to, w, rows);
}

// A group of rows of activations after another, each a round of outputs after another.
template <class X, int PARTS, bool GATED, class Weights>
static __device__ __forceinline__ void multiply_all(const job<PARTS, GATED> &j, const share<PARTS, GATED> &s, Weights &w,
                                                    float *sums) {
    int round = s.round(X::ROWS);
    for (int row = 0; row < j.rows; row += X::ROWS) {
        if (row) sync_block();
        X x(j, s, row);
        int rows = min(X::ROWS, j.rows - row);
        for (int first = 0; first < s.outputs; first += round) {
            placed<share<PARTS, GATED>> to{s, sums, first, min(s.outputs, first + round)};
            if (first) sync_block();
            multiply_slots<1>(x, to, w, rows);
            sync_block();
            put_all(j, to, row, rows);
        }
    }
}

template <int PARTS, bool GATED>
static __device__ __forceinline__ void run_slices(const job<PARTS, GATED> &j, float *sums) {
    share<PARTS, GATED> s(j);
    in_place<PARTS, GATED> lying{j, s};
    bool even = ((u64)j.x & 15) == 0 && (format::BLOCK > 1 || j.k % format::UNIT == 0);
    before_next();
    if (s.outputs == 0) return;
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) u8 rings[];
    __shared__ u64 full[WARPS * MOST_STAGES];
    if (even && 2 * s.pitch <= RING_BYTES) {
        int warp = threadIdx.x / 32, group = j.rows == 1 ? 1 : passing::ROWS;
        ring<PARTS, GATED> r(j, s, rings + warp * RING_BYTES, full + warp * MOST_STAGES, (j.rows + group - 1) / group);
        after_previous();
        if (j.rows == 1) return multiply_all<held>(j, s, r, sums);
        return multiply_all<passing>(j, s, r, sums);
    }
#endif
    after_previous();
    if (even)
        multiply_all<passing>(j, s, lying, sums);
    else
        multiply_all<uneven>(j, s, lying, sums);
}

// --- the launch, activations in eight bits -----------------------------------------------------

// This team's sixteen outputs of a turn, of one stream and one lap. `at` is where its next tile lies, others'
// `apart` from it.
template <int V, class Ring>
static __device__ __forceinline__ void multiply_tiles(const coded_rows &x, const Ring &w, int lap, turning &at, int apart,
                                                      float (&sum)[V][2]) {
    place p;
#pragma unroll 1
    for (int piece = 0; piece < w.s.pieces_of(lap); ++piece) {
        int kept = piece * w.s.split + w.s.member;
        barrier_wait(w.full + at.at, at.turn & 1);
        if (x.first + kept < w.s.spans)
            spans_of<format>::add<V>(sum, w.row(at.at, p.g), w.row(at.at, p.g + 8), x.at(kept));
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(w.empty + at.at);
        at.move(apart);
    }
}

template <int V, class S, class Ring>
static __device__ __forceinline__ void multiply_groups(const coded_rows &x, const placed<S> &to, const Ring &w, int lap,
                                                       turning &at, int rows) {
    place p;
#pragma unroll 1
    for (int local = to.first; local < to.end; local += to.s.step()) {
        int active = to.s.active(local / GROUP), output = local + GROUP * to.s.team + p.g + 8 * p.t;
        if (to.s.team >= active) {
            at.move(active * to.s.STREAMS * to.s.pieces_of(lap));
            continue;
        }
        at.move(to.s.team);
#pragma unroll 1
        for (int stream = 0; stream < to.s.STREAMS; ++stream) {
            float sum[V][2] = {};
            multiply_tiles<V>(x, w, lap, at, active, sum);
#pragma unroll
            for (int r = 0; r < V; ++r) {
                float whole = over_lanes(p, sum[r]), *stands = to.at(r, output, stream) + to.s.member;
                if (r < rows && p.t < 2 && output < to.end) *stands = lap ? *stands + whole : whole;
            }
        }
        at.move(-to.s.team);
    }
}

// V rows of activations after V others, each time a round of outputs after another; and of rows that are too long
// to be kept whole a lap after another.
template <int V, int PARTS, bool GATED>
static __device__ __forceinline__ void multiply_coded(const job<PARTS, GATED> &j, coded_rows x, const tile_ring<PARTS, GATED> &w,
                                                      float *sums) {
    turning at{w.stages};
#pragma unroll 1
    for (int row = 0; row < j.rows; row += V) {
        int rows = min(V, j.rows - row);
#pragma unroll 1
        for (int first = 0; first < w.s.outputs; first += w.s.round(V)) {
            placed<tiled<PARTS, GATED>> to{w.s, sums, first, min(w.s.outputs, first + w.s.round(V))};
#pragma unroll 1
            for (int lap = 0; lap < w.s.laps(); ++lap) {
                x.first = lap * LAP * w.s.split;
                if (first == 0 || w.s.laps() > 1)
#pragma unroll 1
                    for (int r = 0; r < rows; ++r) x.code<THREADS>(j.x + (i64)(row + r) * j.k, r);
                sync_block();
                multiply_groups<V>(x, to, w, lap, at, rows);
                sync_block();
            }
            put_all(j, to, row, rows);
        }
    }
}

// One warp fetches weights, the others multiply by them.
template <int PARTS, bool GATED>
static __device__ __forceinline__ void run_coded(const job<PARTS, GATED> &j, float *sums) {
    extern __shared__ __align__(128) u8 memory[];
    __shared__ u64 barriers[2 * MOST_STAGES];
    tiled<PARTS, GATED> s(j);
    before_next();
    if (s.outputs == 0) return;
    coded_rows x = {memory, min(s.spans, LAP * s.split), j.k, 0};
    int together = j.rows > 1 && TOGETHER * x.spans <= MOST_SPANS ? TOGETHER : 1;
    tile_ring<PARTS, GATED> w(j, s, memory + together * x.bytes(), SHARED_BYTES - together * x.bytes(), barriers);
    if (threadIdx.x == 0) w.begin();
    __syncthreads();
    if (threadIdx.x >= THREADS) return w.produce(together);
    after_previous();
    if (together == 1) return multiply_coded<1>(j, x, w, sums);
    multiply_coded<TOGETHER>(j, x, w, sums);
}

template <int PARTS, bool GATED>
static __device__ __forceinline__ void run(const job<PARTS, GATED> &j) {
    __shared__ __align__(16) float sums[SUMS];
    if constexpr (EIGHT_BITS)
        run_coded(j, sums);
    else
        run_slices(j, sums);
}

// --- entries ---------------------------------------------------------------------------------

// The families that a module may hold alone.
#define BS_ID_linear 1
#define BS_ID_parts2 2
#define BS_ID_parts3 3
#define BS_ID_parts4 4
#define BS_ID_glu 5

#define ARGS(...) __VA_ARGS__

#define LINEAR(family, ending, count, buffers, sizes, table, slot, ...)                                          \
    BS_KERNEL(BLOCK_THREADS, 2) BS_ENTRY(family, ending)(const float *x, buffers, int rows, int k, sizes) {            \
        run(job<count, false>{x, {__VA_ARGS__}, rows, k, 0, nullptr, table, slot, nullptr, 0});                  \
    }

#define TABLE cache_t *table, const int *slot
#define W2 const u8 *w0, const u8 *w1
#define W3 W2, const u8 *w2
#define B2 const float *b0, const float *b1
#define B3 B2, const float *b2
#define N2 int n0, int n1
#define N3 N2, int n2

#if BS_WANTED(BS_ID_linear)
LINEAR(linear_, , 1, ARGS(const u8 *w, float *y), int n, nullptr, nullptr, {w, nullptr, y, n})
LINEAR(linear_, _b, 1, ARGS(const u8 *w, const float *b, float *y), int n, nullptr, nullptr, {w, b, y, n})
LINEAR(linear_, _rows, 1, ARGS(const u8 *w, TABLE), int n, table, slot, {w, nullptr, nullptr, n})
LINEAR(linear_, _b_rows, 1, ARGS(const u8 *w, const float *b, TABLE), int n, table, slot, {w, b, nullptr, n})

BS_KERNEL(BLOCK_THREADS, 2) BS_ENTRY(linear_, _add)(const float *x, const u8 *w, const float *add, float *y, int rows, int k, int n) {
    run(job<1, false>{x, {{w, nullptr, y, n}}, rows, k, 0, nullptr, nullptr, nullptr, add, 0});
}

BS_KERNEL(BLOCK_THREADS, 2) BS_ENTRY(linear_, _b_add)(const float *x, const u8 *w, const float *b, const float *add, float *y,
                                                int rows, int k, int n) {
    run(job<1, false>{x, {{w, b, y, n}}, rows, k, 0, nullptr, nullptr, nullptr, add, 0});
}

BS_KERNEL(BLOCK_THREADS, 2) BS_ENTRY(linear_, _cap)(const float *x, const u8 *w, float *y, int rows, int k, int n, float cap) {
    run(job<1, false>{x, {{w, nullptr, y, n}}, rows, k, 0, nullptr, nullptr, nullptr, nullptr, cap});
}
#endif

#if BS_WANTED(BS_ID_parts2)
LINEAR(parts2_, , 2, ARGS(W2, float *y0, float *y1), ARGS(N2), nullptr, nullptr,
       {w0, nullptr, y0, n0}, {w1, nullptr, y1, n1})
LINEAR(parts2_, _b, 2, ARGS(W2, B2, float *y0, float *y1), ARGS(N2), nullptr, nullptr,
       {w0, b0, y0, n0}, {w1, b1, y1, n1})
LINEAR(parts2_, _rows, 2, ARGS(W2, float *y0, TABLE), ARGS(N2), table, slot,
       {w0, nullptr, y0, n0}, {w1, nullptr, nullptr, n1})
LINEAR(parts2_, _b_rows, 2, ARGS(W2, B2, float *y0, TABLE), ARGS(N2), table, slot,
       {w0, b0, y0, n0}, {w1, b1, nullptr, n1})
#endif

#if BS_WANTED(BS_ID_parts3)
LINEAR(parts3_, , 3, ARGS(W3, float *y0, float *y1, float *y2), ARGS(N3), nullptr, nullptr,
       {w0, nullptr, y0, n0}, {w1, nullptr, y1, n1}, {w2, nullptr, y2, n2})
LINEAR(parts3_, _b, 3, ARGS(W3, B3, float *y0, float *y1, float *y2), ARGS(N3), nullptr, nullptr,
       {w0, b0, y0, n0}, {w1, b1, y1, n1}, {w2, b2, y2, n2})
LINEAR(parts3_, _rows, 3, ARGS(W3, float *y0, float *y1, TABLE), ARGS(N3), table, slot,
       {w0, nullptr, y0, n0}, {w1, nullptr, y1, n1}, {w2, nullptr, nullptr, n2})
LINEAR(parts3_, _b_rows, 3, ARGS(W3, B3, float *y0, float *y1, TABLE), ARGS(N3), table, slot,
       {w0, b0, y0, n0}, {w1, b1, y1, n1}, {w2, b2, nullptr, n2})
#endif

#if BS_WANTED(BS_ID_parts4)
LINEAR(parts4_, , 4, ARGS(W3, const u8 *w3, float *y0, float *y1, float *y2, float *y3), ARGS(N3, int n3), nullptr,
       nullptr, {w0, nullptr, y0, n0}, {w1, nullptr, y1, n1}, {w2, nullptr, y2, n2}, {w3, nullptr, y3, n3})
#endif

#if BS_WANTED(BS_ID_glu)
#define GLU(ending, outs, y, codes)                                                                                    \
    BS_KERNEL(BLOCK_THREADS, 2) BS_ENTRY(glu_, ending)(const float *x, const u8 *gate, const u8 *up, outs, int rows, int k,  \
                                                 int n, int act) {                                                     \
        run(job<2, true>{x, {{gate, nullptr, y, n}, {up, nullptr, nullptr, n}}, rows, k, act, codes, nullptr, nullptr, \
                         nullptr, 0});                                                                                 \
    }

GLU(, float *y, y, nullptr)
GLU(_q, code_t *yq, nullptr, yq)
GLU(_fq, ARGS(float *y, code_t *yq), y, yq)
#endif
