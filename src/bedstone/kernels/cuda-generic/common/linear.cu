// linear, parts2 to parts4, glu of float activations: matrix products of one weight format.
//
// The outputs of a launch, whatever matrix they are of, are dealt evenly over its blocks, one block a
// multiprocessor. A warp streams the block's weights through a ring, from before the activations exist;
// eight warps hold the activations in registers, each thread the same few units of every row; a last
// warp adds up what those eight make of a row and puts it where it belongs. Nobody waits for anybody but
// through barriers of the ring.
#include "act.cuh"
#include "stream.cuh"
#include "weights.cuh"

#define CONSUMERS 256
#define WARPS (CONSUMERS / 32)
#define PRODUCER WARPS
#define FINISHER (WARPS + 1)
#define THREADS (CONSUMERS + 64)
#define MOST_ROWS 32             // rows of weights of one stage
#define MANY (48 / format::UNIT) // units of activations that a thread keeps in registers
#define WAITING 4                // stages whose sums wait to be added up

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
};

// How threads lie on a row: `lanes` of them share it; `groups` of them go side by side.
struct mapping {
    int units, lanes, groups, slots;

    __device__ explicit mapping(int k) {
        units = (k + format::UNIT - 1) / format::UNIT;
        lanes = lanes_of(units);
        groups = CONSUMERS / lanes;
        slots = (units + lanes - 1) / lanes;
    }
};

// The outputs of one block of all there are, and how many a stage brings: rows of weights that lie one
// after another, those of a gated unit's two matrices half each.
template <bool GATED>
struct walk {
    i64 row_bytes;
    int first, last, rows, outputs, stages;
    u32 stream_bytes, stage_bytes;

    __device__ walk(int k, int all) {
        row_bytes = format::bytes(k);
        first = (int)((i64)all * blockIdx.x / gridDim.x);
        last = (int)((i64)all * (blockIdx.x + 1) / gridDim.x);
        rows = MOST_ROWS;
        while (rows > (GATED ? 2 : 1) && rows * row_bytes > BS_STAGE_BYTES) rows /= 2;
        outputs = GATED ? rows / 2 : rows;
        stream_bytes = ((u32)(outputs * row_bytes) + 47) & ~15u; // a copy begins up to 15 bytes early
        stage_bytes = stream_bytes * (GATED ? 2 : 1);
        stages = min(BS_MOST_STAGES, (int)(BS_RING_BYTES / stage_bytes));
    }

    // The block's outputs of a part whose first is the `before`th of all: [from, to).
    __device__ __forceinline__ void share(int before, int n, int &from, int &to) const {
        from = max(first - before, 0);
        to = min(last - before, n);
    }
};

// Calls f(part, first output, outputs) for each stage of a block, the parts one after another.
template <int PARTS, bool GATED, class F>
static __device__ __forceinline__ void each_stage(const job<PARTS, GATED> &j, const walk<GATED> &w, F f) {
    int before = 0;
#pragma unroll
    for (int p = 0; p < (GATED ? 1 : PARTS); before += j.part[p++].n) {
        int from, to;
        w.share(before, j.part[p].n, from, to);
        for (; from < to; from += w.outputs) f(p, from, min(w.outputs, to - from));
    }
}

// --- activations -----------------------------------------------------------------------------

// Four consecutive activations from value `i` of a row of k; past its end zeros.
static __device__ __forceinline__ void load_piece(float *to, const float *x, int i, int k) {
    if (i + 4 <= k && ((u64)(x + i) & 15) == 0) {
        float4 v = *(const float4 *)(x + i);
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) to[j] = i + j < k ? x[i + j] : 0.f;
}

static __device__ __forceinline__ void load_values(float *to, const float *x, int u, int k) {
#pragma unroll
    for (int p = 0; p < format::UNIT / 4; ++p) load_piece(to + 4 * p, x, format::at(u, p), k);
}

// A unit's activations as floats.
template <class F, bool EIGHT>
struct activations {
    float x[F::UNIT], all;

    __device__ __forceinline__ void load(const float *from, int u, int k) {
        load_values(x, from, u, k);
        all = 0;
#pragma unroll
        for (int i = 0; i < F::UNIT; i += 4) all += (x[i] + x[i + 1]) + (x[i + 2] + x[i + 3]);
    }
    __device__ __forceinline__ float dot(const u8 *row, int u) const { return F::dot(row, u, x, all); }
};

// A scale of so many values, the largest of which has these bits: NaN where one is not finite.
static __device__ __forceinline__ float scale_of(u32 largest) {
    return largest >= 0x7f800000u ? __uint_as_float(0x7fffffffu) : __uint_as_float(largest) / 127.f;
}

// The same in eight bits. Every lane of a warp loads at once: neighbours share scales.
template <class F>
struct activations<F, true> {
    static constexpr int PIECES = F::UNIT / 4, EACH = PIECES / F::SCALES;
    eight_bits<PIECES, F::SCALES> codes;

    __device__ __forceinline__ void load(const float *from, int u, int k) {
        float x[F::UNIT];
        load_values(x, from, u, k);
#pragma unroll
        for (int s = 0; s < F::SCALES; ++s) {
            u32 largest = 0;
#pragma unroll
            for (int i = 0; i < 4 * EACH; ++i) largest = max(largest, __float_as_uint(fabsf(x[4 * EACH * s + i])));
#pragma unroll
            for (int step = 1; step < F::SHARE; step *= 2) largest = max(largest, __shfl_xor_sync(BS_FULL, largest, step));
            codes.scale[s] = scale_of(largest);
#pragma unroll
            for (int p = EACH * s; p < EACH * (s + 1); ++p) code(p, x + 4 * p, codes.scale[s]);
        }
    }
    __device__ __forceinline__ void code(int p, const float *x, float scale) {
        u32 word = 0;
        int sum = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int value = scale > 0 ? (int)roundf(x[i] / scale) : 0;
            word |= (u32)(value & 255) << 8 * i;
            sum += value;
        }
        codes.word[p] = (int)word;
        codes.sum[p] = sum;
    }
    __device__ __forceinline__ float dot(const u8 *row, int u) const { return F::dot_codes(row, u, codes); }
};

// Quantized matrices read eight bits where the numerics is the one that also caches bfloat16.
typedef activations<format, (format::BLOCK > 1 && sizeof(cache_t) == 2)> unit_of_x;

// A unit's product, value by value: rows that are no whole units, or do not begin on 16 bytes.
static __device__ __forceinline__ float edge_dot(const u8 *row, int u, const float *x, int k) {
    float sum = 0;
    for (int p = 0; p < format::UNIT / 4; ++p)
        for (int j = 0; j < 4; ++j) {
            int i = format::at(u, p) + j;
            if (i < k) sum = fmaf(format::value(row, i), x[4 * p + j], sum);
        }
    return sum;
}

// --- results ---------------------------------------------------------------------------------

typedef float row_sums[MOST_ROWS][WARPS];

// A row's products, from the sums of the warps that share it.
static __device__ __forceinline__ float row_sum(const float *sums, int warps) {
    float value = sums[0];
#pragma unroll
    for (int w = 1; w < WARPS; ++w) value = w < warps ? value + sums[w] : value;
    return value;
}

template <int PARTS, bool GATED>
static __device__ __forceinline__ void put(const job<PARTS, GATED> &j, int p, int i, int row, float value) {
    const matrix &part = j.part[p];
    if (part.bias) value += part.bias[i];
    if (!j.table || p != PARTS - 1) {
        part.y[(i64)row * part.n + i] = value;
    } else if (j.slot[row] >= 0) {
        j.table[(i64)j.slot[row] * part.n + i] = from_f32<cache_t>(value);
    }
}

template <int PARTS>
static __device__ __forceinline__ void put_gated(const job<PARTS, true> &j, int i, int row, float value) {
    i64 at = (i64)row * j.part[0].n + i;
    if (j.part[0].y) j.part[0].y[at] = value;
    if (j.codes) j.codes[at] = from_f32<code_t>(value);
}

// A stage's results, by one warp, a lane an output.
template <int PARTS, bool GATED>
static __device__ __forceinline__ void put_stage(const job<PARTS, GATED> &j, const walk<GATED> &w, int p, int first,
                                                 int count, int row, const row_sums &sums, int warps) {
    int i = threadIdx.x % 32;
    if (i >= count) return;
    float value = row_sum(sums[i], warps);
    if constexpr (GATED)
        put_gated(j, first + i, row, gated(value, row_sum(sums[w.outputs + i], warps), j.act));
    else
        put(j, p, first + i, row, value);
}

// The sums of A values over a warp: the one of value `lane / (32 / A)` in every lane.
template <int A>
static __device__ __forceinline__ float warp_sums(float (&v)[A]) {
    int step = 16;
#pragma unroll
    for (int half = A / 2; half; half /= 2, step /= 2) {
        bool high = threadIdx.x & step;
#pragma unroll
        for (int i = 0; i < half; ++i)
            v[i] = (high ? v[i + half] : v[i]) + __shfl_xor_sync(BS_FULL, high ? v[i] : v[i + half], step);
    }
#pragma unroll
    for (; step; step /= 2) v[0] += __shfl_xor_sync(BS_FULL, v[0], step);
    return v[0];
}

// --- without a ring: older devices, and rows that no bulk copy can cut -----------------------

template <int PARTS, bool GATED>
static __device__ __forceinline__ const u8 *row_at(const job<PARTS, GATED> &j, const walk<GATED> &w, int p, int output,
                                                   int stream) {
    return (stream ? j.part[PARTS - 1].w : j.part[p].w) + w.row_bytes * output;
}

template <int PARTS, bool GATED>
static __device__ void plain(const job<PARTS, GATED> &j, const walk<GATED> &w, bool edge, row_sums &sums) {
    mapping m(j.k);
    int group = threadIdx.x / m.lanes, lane = threadIdx.x % m.lanes, streams = GATED ? 2 : 1;
    after_previous();
    for (int row = 0; row < j.rows; ++row)
        each_stage(j, w, [&](int p, int first, int count) {
            for (int i = group; threadIdx.x < CONSUMERS && i < count * streams; i += m.groups) {
                const u8 *weights = row_at(j, w, p, first + i / streams, i % streams);
                float sum[1] = {0};
                for (int slot = 0; slot < m.slots; ++slot) {
                    int u = lane + slot * m.lanes;
                    float values[format::UNIT];
                    unit_of_x x;
                    load_values(values, j.x + (i64)row * j.k, u, j.k);
                    if (!edge) x.load(j.x + (i64)row * j.k, u, j.k);
                    if (u < m.units) sum[0] += edge ? edge_dot(weights, u, values, j.k) : x.dot(weights, u);
                }
                float whole = warp_sums<1>(sum);
                if (threadIdx.x % 32 == 0) sums[i % streams * w.outputs + i / streams][lane / 32] = whole;
            }
            __syncthreads();
            if (threadIdx.x / 32 == FINISHER) put_stage(j, w, p, first, count, row, sums, m.lanes / 32);
            __syncthreads();
        });
}

#if __CUDA_ARCH__ >= 900
// --- the ring --------------------------------------------------------------------------------

struct shared_memory {
    row_sums sums[WAITING];
    u64 full[BS_MOST_STAGES], empty[BS_MOST_STAGES];
    u64 made[WAITING], added[WAITING];
    u32 skew[BS_MOST_STAGES][2]; // where each stream of a stage begins among 16 bytes
};

// A place in a ring of `count`, and how often the ring went round before.
struct place {
    int at = 0;
    u32 turn = 0;

    __device__ __forceinline__ void next(int count) {
        if (++at == count) at = 0, ++turn;
    }
};

static __device__ __forceinline__ void open(shared_memory *sh, int stages) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) barrier_init(&sh->full[i], 1), barrier_init(&sh->empty[i], WARPS);
        for (int i = 0; i < WAITING; ++i) barrier_init(&sh->made[i], WARPS), barrier_init(&sh->added[i], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
}

template <int PARTS, bool GATED>
static __device__ void produce(const job<PARTS, GATED> &j, const walk<GATED> &w, u8 *ring, shared_memory *sh) {
    place stage;
    for (int row = 0; row < j.rows; ++row)
        each_stage(j, w, [&](int p, int first, int count) {
            u32 bytes = (u32)(w.row_bytes * count), total = 0, moved[2];
            const u8 *rows[2];
            if (stage.turn) barrier_wait(&sh->empty[stage.at], (stage.turn - 1) & 1);
            u8 *to = ring + stage.at * w.stage_bytes;
#pragma unroll
            for (int i = 0; i < (GATED ? 2 : 1); ++i) {
                rows[i] = row_at(j, w, p, first, i);
                const u8 *end = row_at(j, w, p, j.part[p].n, i);
                moved[i] = bulk_bytes(rows[i], bytes, end);
                copy_rest(to + i * w.stream_bytes, rows[i], bytes, end);
                sh->skew[stage.at][i] = skew(rows[i]);
                total += moved[i];
            }
            barrier_expect(&sh->full[stage.at], total);
#pragma unroll
            for (int i = 0; i < (GATED ? 2 : 1); ++i)
                if (moved[i])
                    bulk_copy(to + i * w.stream_bytes, rows[i] - skew(rows[i]), moved[i], &sh->full[stage.at]);
            stage.next(w.stages);
        });
}

// A rows of a stage at a time, a row `pitch` bytes after another, by this thread's units.
template <int A>
static __device__ __forceinline__ void multiply(const u8 *rows, u32 pitch, const mapping &m, int lane,
                                                const unit_of_x (&own)[MANY], const float *x, int k, float (&sum)[A]) {
#pragma unroll
    for (int s = 0; s < MANY; ++s)
        if (lane + s * m.lanes < m.units)
#pragma unroll
            for (int i = 0; i < A; ++i) sum[i] += own[s].dot(rows + i * pitch, lane + s * m.lanes);
    for (int s = MANY; s < m.slots; ++s) {
        unit_of_x more;
        more.load(x, lane + s * m.lanes, k);
        if (lane + s * m.lanes < m.units)
#pragma unroll
            for (int i = 0; i < A; ++i) sum[i] += more.dot(rows + i * pitch, lane + s * m.lanes);
    }
}

template <int A, bool GATED>
static __device__ __noinline__ void consume(const float *x, int rows, int k, const walk<GATED> w, int stages,
                                            const u8 *ring, shared_memory *sh) {
    mapping m(k);
    int group = threadIdx.x / m.lanes, lane = threadIdx.x % m.lanes, warp = lane / 32;
    place stage, made;
    after_previous();
    for (int row = 0; row < rows; ++row, x += k) {
        unit_of_x own[MANY];
#pragma unroll
        for (int s = 0; s < MANY; ++s) own[s].load(x, lane + s * m.lanes, k);
        for (int i = 0; i < stages; ++i) {
            barrier_wait(&sh->full[stage.at], stage.turn & 1);
            if (made.turn) barrier_wait(&sh->added[made.at], (made.turn - 1) & 1);
            for (int from = A * group; from < w.rows; from += A * m.groups) {
                int stream = GATED && from >= w.outputs;
                const u8 *first = ring + stage.at * w.stage_bytes + stream * w.stream_bytes + sh->skew[stage.at][stream];
                float sum[A] = {0};
                multiply<A>(first + (from - stream * w.outputs) * (u32)w.row_bytes, (u32)w.row_bytes, m, lane, own, x, k,
                            sum);
                float whole = warp_sums<A>(sum);
                if (threadIdx.x % (32 / A) == 0) sh->sums[made.at][from + threadIdx.x % 32 / (32 / A)][warp] = whole;
            }
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&sh->empty[stage.at]), barrier_arrive(&sh->made[made.at]);
            stage.next(w.stages);
            made.next(WAITING);
        }
    }
}

template <int PARTS, bool GATED>
static __device__ void finish(const job<PARTS, GATED> &j, const walk<GATED> &w, shared_memory *sh) {
    place made;
    int warps = lanes_of((j.k + format::UNIT - 1) / format::UNIT) / 32;
    after_previous();
    for (int row = 0; row < j.rows; ++row)
        each_stage(j, w, [&](int p, int first, int count) {
            barrier_wait(&sh->made[made.at], made.turn & 1);
            put_stage(j, w, p, first, count, row, sh->sums[made.at], warps);
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&sh->added[made.at]);
            made.next(WAITING);
        });
}

template <int PARTS, bool GATED>
static __device__ void streamed(const job<PARTS, GATED> &j, const walk<GATED> &w, shared_memory *sh, u8 *ring) {
    open(sh, w.stages);
    int warp = threadIdx.x / 32, stages = 0;
    if (warp == PRODUCER) {
        if (threadIdx.x % 32 == 0) produce(j, w, ring, sh);
        return;
    }
    if (warp == FINISHER) return finish(j, w, sh);
    each_stage(j, w, [&](int, int, int) { ++stages; });
    int at_once = w.outputs / (CONSUMERS / lanes_of((j.k + format::UNIT - 1) / format::UNIT));
    if (at_once >= 4)
        consume<4>(j.x, j.rows, j.k, w, stages, ring, sh);
    else if (at_once >= 2)
        consume<2>(j.x, j.rows, j.k, w, stages, ring, sh);
    else
        consume<1>(j.x, j.rows, j.k, w, stages, ring, sh);
}
#endif

template <int PARTS, bool GATED>
static __device__ __forceinline__ void run(const job<PARTS, GATED> &j) {
    int all = 0;
#pragma unroll
    for (int p = 0; p < (GATED ? 1 : PARTS); ++p) all += j.part[p].n;
    walk<GATED> w(j.k, all);
    bool edge = format::BLOCK == 1 && j.k % format::UNIT;
    before_next();
    if (w.first == w.last) return;
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) u8 ring[];
    __shared__ shared_memory sh;
    if (!edge && w.stages) return streamed(j, w, &sh, ring);
    plain(j, w, edge, sh.sums[0]);
#else
    __shared__ row_sums sums;
    plain(j, w, edge, sums);
#endif
}

// --- entries ---------------------------------------------------------------------------------

#define ARGS(...) __VA_ARGS__

#define LINEAR(family, ending, count, buffers, sizes, table, slot, ...)                                          \
    BS_KERNEL(THREADS, 2) BS_ENTRY(family, ending)(const float *x, buffers, int rows, int k, sizes) {               \
        run(job<count, false>{x, {__VA_ARGS__}, rows, k, 0, nullptr, table, slot});                              \
    }

#define TABLE cache_t *table, const int *slot
#define W2 const u8 *w0, const u8 *w1
#define W3 W2, const u8 *w2
#define B2 const float *b0, const float *b1
#define B3 B2, const float *b2
#define N2 int n0, int n1
#define N3 N2, int n2

LINEAR(linear_, , 1, ARGS(const u8 *w, float *y), int n, nullptr, nullptr, {w, nullptr, y, n})
LINEAR(linear_, _b, 1, ARGS(const u8 *w, const float *b, float *y), int n, nullptr, nullptr, {w, b, y, n})
LINEAR(linear_, _rows, 1, ARGS(const u8 *w, TABLE), int n, table, slot, {w, nullptr, nullptr, n})
LINEAR(linear_, _b_rows, 1, ARGS(const u8 *w, const float *b, TABLE), int n, table, slot, {w, b, nullptr, n})

LINEAR(parts2_, , 2, ARGS(W2, float *y0, float *y1), ARGS(N2), nullptr, nullptr,
       {w0, nullptr, y0, n0}, {w1, nullptr, y1, n1})
LINEAR(parts2_, _b, 2, ARGS(W2, B2, float *y0, float *y1), ARGS(N2), nullptr, nullptr,
       {w0, b0, y0, n0}, {w1, b1, y1, n1})
LINEAR(parts2_, _rows, 2, ARGS(W2, float *y0, TABLE), ARGS(N2), table, slot,
       {w0, nullptr, y0, n0}, {w1, nullptr, nullptr, n1})
LINEAR(parts2_, _b_rows, 2, ARGS(W2, B2, float *y0, TABLE), ARGS(N2), table, slot,
       {w0, b0, y0, n0}, {w1, b1, nullptr, n1})

LINEAR(parts3_, , 3, ARGS(W3, float *y0, float *y1, float *y2), ARGS(N3), nullptr, nullptr,
       {w0, nullptr, y0, n0}, {w1, nullptr, y1, n1}, {w2, nullptr, y2, n2})
LINEAR(parts3_, _b, 3, ARGS(W3, B3, float *y0, float *y1, float *y2), ARGS(N3), nullptr, nullptr,
       {w0, b0, y0, n0}, {w1, b1, y1, n1}, {w2, b2, y2, n2})
LINEAR(parts3_, _rows, 3, ARGS(W3, float *y0, float *y1, TABLE), ARGS(N3), table, slot,
       {w0, nullptr, y0, n0}, {w1, nullptr, y1, n1}, {w2, nullptr, nullptr, n2})
LINEAR(parts3_, _b_rows, 3, ARGS(W3, B3, float *y0, float *y1, TABLE), ARGS(N3), table, slot,
       {w0, b0, y0, n0}, {w1, b1, y1, n1}, {w2, b2, nullptr, n2})

LINEAR(parts4_, , 4, ARGS(W3, const u8 *w3, float *y0, float *y1, float *y2, float *y3), ARGS(N3, int n3), nullptr,
       nullptr, {w0, nullptr, y0, n0}, {w1, nullptr, y1, n1}, {w2, nullptr, y2, n2}, {w3, nullptr, y3, n3})

#define GLU(ending, outs, y, codes)                                                                                    \
    BS_KERNEL(THREADS, 2) BS_ENTRY(glu_, ending)(const float *x, const u8 *gate, const u8 *up, outs, int rows, int k,     \
                                              int n, int act) {                                                        \
        run(job<2, true>{x, {{gate, nullptr, y, n}, {up, nullptr, nullptr, n}}, rows, k, act, codes, nullptr, nullptr}); \
    }

GLU(, float *y, y, nullptr)
GLU(_q, code_t *yq, nullptr, yq)
GLU(_fq, ARGS(float *y, code_t *yq), y, yq)
