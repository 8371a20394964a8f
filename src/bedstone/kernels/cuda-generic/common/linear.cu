// linear, parts2 to parts4, glu of float activations: matrix products of one weight format.
//
// The outputs of a launch, whatever matrix they are of, are dealt evenly over its blocks, one block a
// multiprocessor. A warp streams the block's weights through a ring, from before the activations exist;
// eight warps hold the activations in registers, each thread the same few units of every row, and leave
// each thread's share of a few rows at a time to a last warp, which adds up and puts the results where
// they belong. Nobody waits for anybody but through the ring's barriers, and what multiplies does little else.
#include "act.cuh"
#include "stream.cuh"
#include "weights.cuh"

#define CONSUMERS 256
#define WARPS (CONSUMERS / 32)
#define PRODUCER WARPS
#define THREADS (CONSUMERS + 64)
#define RING_BYTES (96 * 1024)
#define STAGE_BYTES (20 * 1024)
#define MOST_STAGES 16
#define MOST_AT_ONCE 4           // rows that a thread multiplies
#define MANY (48 / format::UNIT) // units of activations that a thread keeps in registers
#define WAITING 2                // stages whose shares wait to be added up

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

// The outputs of one block of all there are, and what a stage brings: `at_once` rows of weights for each
// group, that lie one after another; those of a gated unit's two matrices half each.
template <bool GATED>
struct walk {
    i64 row_bytes;
    int first, last, at_once, outputs, stages;
    u32 stream_bytes, stage_bytes;

    __device__ walk(const mapping &m, int k, int all) {
        row_bytes = format::bytes(k);
        first = (int)((i64)all * blockIdx.x / gridDim.x);
        last = (int)((i64)all * (blockIdx.x + 1) / gridDim.x);
        at_once = MOST_AT_ONCE;
        while (at_once > 1 && at_once * m.groups * row_bytes > STAGE_BYTES) at_once /= 2;
        if (GATED && at_once * m.groups == 1) at_once = 2;
        outputs = at_once * m.groups / (GATED ? 2 : 1);
        stream_bytes = ((u32)(outputs * row_bytes) + 47) & ~15u; // a copy begins up to 15 bytes early
        stage_bytes = stream_bytes * (GATED ? 2 : 1);
        stages = min(MOST_STAGES, (int)(RING_BYTES / stage_bytes));
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

template <int PARTS, bool GATED>
static __device__ __forceinline__ const u8 *row_at(const job<PARTS, GATED> &j, const walk<GATED> &w, int p, int output,
                                                   int stream) {
    return (stream ? j.part[PARTS - 1].w : j.part[p].w) + w.row_bytes * output;
}

// --- activations -----------------------------------------------------------------------------

// A unit's activations where rows begin on 16 bytes and are whole units: loads that wait for nothing.
static __device__ __forceinline__ void load_values(float (&to)[format::UNIT], const float *x, int u) {
#pragma unroll
    for (int p = 0; p < format::UNIT / 4; ++p) {
        float4 v = *(const float4 *)(x + format::at(u, p));
        to[4 * p] = v.x, to[4 * p + 1] = v.y, to[4 * p + 2] = v.z, to[4 * p + 3] = v.w;
    }
}

// The same wherever they lie; past the end of a row of k zeros.
static __device__ __forceinline__ void load_each(float (&to)[format::UNIT], const float *x, int u, int k) {
    for (int i = 0; i < format::UNIT; ++i) {
        int at = format::at(u, i / 4) + i % 4;
        to[i] = at < k ? x[at] : 0.f;
    }
}

// A unit's activations as floats.
template <class F, bool EIGHT>
struct activations {
    float x[F::UNIT], all;

    __device__ __forceinline__ void take(const float (&from)[F::UNIT]) {
        all = 0;
#pragma unroll
        for (int i = 0; i < F::UNIT; i += 4) {
            x[i] = from[i], x[i + 1] = from[i + 1], x[i + 2] = from[i + 2], x[i + 3] = from[i + 3];
            all += (x[i] + x[i + 1]) + (x[i + 2] + x[i + 3]);
        }
    }
    __device__ __forceinline__ float dot(const u8 *row, int u) const { return F::dot(row, u, x, all); }
};

// A scale of so many values, the largest of which has these bits: NaN where one is not finite.
static __device__ __forceinline__ float scale_of(u32 largest) {
    return largest >= 0x7f800000u ? __uint_as_float(0x7fffffffu) : __uint_as_float(largest) / 127.f;
}

// The same in eight bits. Every lane of a warp takes its own at once: neighbours share scales.
template <class F>
struct activations<F, true> {
    static constexpr int PIECES = F::UNIT / 4, EACH = PIECES / F::SCALES;
    eight_bits<PIECES, F::SCALES> codes;

    __device__ __forceinline__ void take(const float (&x)[F::UNIT]) {
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

// The sums of V values over a warp, all at once: the one of value `lane / (32 / V)` in every lane.
template <int V>
static __device__ __forceinline__ float warp_sums(float (&v)[V]) {
    int step = 16;
#pragma unroll
    for (int half = V / 2; half; half /= 2, step /= 2) {
        bool high = threadIdx.x & step;
#pragma unroll
        for (int i = 0; i < half; ++i)
            v[i] = (high ? v[i + half] : v[i]) + __shfl_xor_sync(BS_FULL, high ? v[i] : v[i + half], step);
    }
#pragma unroll
    for (; step; step /= 2) v[0] += __shfl_xor_sync(BS_FULL, v[0], step);
    return v[0];
}

// Each thread's shares of the rows of a stage, a row after another, and each warp's sums of them.
struct shares {
    float of[MOST_AT_ONCE][CONSUMERS];
    float warp[MOST_AT_ONCE][WARPS];
};

// The rows' products, in `warp`: row i of group g stands in column g * lanes / 32 of line i.
template <int A>
static __device__ __forceinline__ void add_up(shares &s, int lanes) {
    constexpr int LINES = A < 4 ? A : 4; // their sums are a value for each lane
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int from = 0; from < A; from += LINES) {
        float v[LINES * WARPS];
#pragma unroll
        for (int i = 0; i < LINES; ++i)
#pragma unroll
            for (int w = 0; w < WARPS; ++w) v[i * WARPS + w] = s.of[from + i][32 * w + lane];
        float sum = warp_sums<LINES * WARPS>(v);
        if (lane % (32 / (LINES * WARPS)) == 0) (&s.warp[from][0])[lane / (32 / (LINES * WARPS))] = sum;
    }
    __syncwarp();
    int each = lanes / 32;
    for (int i = lane; i < A * WARPS; i += 32) {
        int column = i % WARPS;
        if (column % each) continue;
        float *sums = s.warp[i / WARPS] + column;
        float total = sums[0];
        for (int w = 1; w < each; ++w) total += sums[w];
        sums[0] = total;
    }
    __syncwarp();
}

template <int PARTS, bool GATED>
static __device__ __forceinline__ void put(const job<PARTS, GATED> &j, int p, int i, int row, int slot, float value) {
    const matrix &part = j.part[p];
    i64 at = (i64)row * part.n + i;
    if (part.bias) value += part.bias[i];
    if (j.add) value += j.add[at];
    if (j.cap > 0) value = __fmul_rn(j.cap, tanhf(__fdiv_rn(value, j.cap)));
    if (!j.table || p != PARTS - 1) {
        part.y[at] = value;
    } else if (slot >= 0) {
        j.table[(i64)slot * part.n + i] = from_f32<cache_t>(value);
    }
}

template <int PARTS>
static __device__ __forceinline__ void put_gated(const job<PARTS, true> &j, int i, int row, float value) {
    i64 at = (i64)row * j.part[0].n + i;
    if (j.part[0].y) j.part[0].y[at] = value;
    if (j.codes) j.codes[at] = from_f32<code_t>(value);
}

// The product of the row that stands `i`th in a stage.
static __device__ __forceinline__ float row_of(const shares &s, int i, int at_once, int lanes) {
    return s.warp[i % at_once][i / at_once * (lanes / 32)];
}

// A stage's results, by one warp.
template <int PARTS, bool GATED>
static __device__ __forceinline__ void put_stage(const job<PARTS, GATED> &j, const walk<GATED> &w, int lanes, int p,
                                                 int first, int count, int row, int slot, shares &s) {
    if (w.at_once == 4) add_up<4>(s, lanes);
    if (w.at_once == 2) add_up<2>(s, lanes);
    if (w.at_once == 1) add_up<1>(s, lanes);
    for (int i = threadIdx.x % 32; i < count; i += 32) {
        float value = row_of(s, i, w.at_once, lanes);
        if constexpr (GATED)
            put_gated(j, first + i, row, gated(value, row_of(s, w.outputs + i, w.at_once, lanes), j.act));
        else
            put(j, p, first + i, row, slot, value);
    }
}

// --- without a ring: older devices, and rows that no bulk copy can cut -----------------------

template <int PARTS, bool GATED>
static __device__ void plain(const job<PARTS, GATED> &j, const walk<GATED> &w, const mapping &m, bool edge, shares &s) {
    int group = threadIdx.x / m.lanes, lane = threadIdx.x % m.lanes;
    after_previous();
    for (int row = 0; row < j.rows; ++row)
        each_stage(j, w, [&](int p, int first, int count) {
            for (int i = 0; threadIdx.x < CONSUMERS && i < w.at_once; ++i) {
                int stands = group * w.at_once + i, stream = stands / w.outputs;
                int output = first + min(stands % w.outputs, count - 1);
                const u8 *weights = row_at(j, w, p, output, stream);
                float sum = 0;
                for (int slot = 0; slot < m.slots; ++slot) {
                    int u = lane + slot * m.lanes;
                    float values[format::UNIT];
                    unit_of_x x;
                    load_each(values, j.x + (i64)row * j.k, u, j.k);
                    x.take(values);
                    if (u < m.units) sum += edge ? edge_dot(weights, u, values, j.k) : x.dot(weights, u);
                }
                s.of[i][threadIdx.x] = sum;
            }
            __syncthreads();
            int slot = j.table ? j.slot[row] : 0;
            if (threadIdx.x / 32 == PRODUCER) put_stage(j, w, m.lanes, p, first, count, row, slot, s);
            __syncthreads();
        });
}

#if __CUDA_ARCH__ >= 900
// --- the ring --------------------------------------------------------------------------------

struct shared_memory {
    shares sums[WAITING];
    u64 full[MOST_STAGES], empty[MOST_STAGES];
    u64 made[WAITING], added[WAITING];
    u32 skew[MOST_STAGES][2]; // where each stream of a stage begins among 16 bytes
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

// A unit's activations; of a unit past the last the last again, which nobody multiplies.
static __device__ __forceinline__ void load_unit(unit_of_x &to, const float *x, int u, int units) {
    float values[format::UNIT];
    load_values(values, x, min(u, units - 1));
    to.take(values);
}

// A rows, `pitch` bytes after another, by this thread's units.
template <int A>
static __device__ __forceinline__ void multiply(const u8 *rows, u32 pitch, const mapping &m, int lane,
                                                const unit_of_x (&own)[MANY], const float *x, float (&sum)[A]) {
#pragma unroll
    for (int s = 0; s < MANY; ++s)
        if (lane + s * m.lanes < m.units)
#pragma unroll
            for (int i = 0; i < A; ++i) sum[i] += own[s].dot(rows + i * pitch, lane + s * m.lanes);
    for (int s = MANY; s < m.slots; ++s) {
        unit_of_x more;
        load_unit(more, x, lane + s * m.lanes, m.units);
        if (lane + s * m.lanes < m.units)
#pragma unroll
            for (int i = 0; i < A; ++i) sum[i] += more.dot(rows + i * pitch, lane + s * m.lanes);
    }
}

// The same of a gated unit's rows where one group has both streams: half of them from each.
template <int A>
static __device__ __forceinline__ void multiply_streams(const u8 *stage, const walk<true> &w, const u32 (&skewed)[2],
                                                        const mapping &m, int lane, const unit_of_x (&own)[MANY],
                                                        const float *x, float (&sum)[A]) {
    constexpr int HALF = A < 2 ? 1 : A / 2;
    float half[2][HALF] = {0};
#pragma unroll
    for (int i = 0; i < 2; ++i)
        multiply<HALF>(stage + i * w.stream_bytes + skewed[i], (u32)w.row_bytes, m, lane, own, x, half[i]);
#pragma unroll
    for (int i = 0; i < A; ++i) sum[i] = half[i / HALF][i % HALF];
}

template <int A, bool GATED>
static __device__ __noinline__ void consume(const float *x, int rows, int k, const walk<GATED> w, int stages,
                                            const u8 *ring, shared_memory *sh) {
    mapping m(k);
    int lane = threadIdx.x % m.lanes, from = A * (threadIdx.x / m.lanes);
    int stream = GATED && from >= w.outputs;
    place stage, made;
    ring += stream * w.stream_bytes + (from - stream * w.outputs) * (u32)w.row_bytes;
    after_previous();
    for (int row = 0; row < rows; ++row, x += k) {
        unit_of_x own[MANY];
#pragma unroll
        for (int s = 0; s < MANY; ++s) load_unit(own[s], x, lane + s * m.lanes, m.units);
        for (int i = 0; i < stages; ++i) {
            float sum[A] = {0};
            barrier_wait(&sh->full[stage.at], stage.turn & 1);
            const u8 *mine = ring + stage.at * w.stage_bytes;
            bool both = false;
            if constexpr (GATED) both = m.groups == 1;
            if constexpr (GATED)
                if (both) multiply_streams<A>(mine, w, sh->skew[stage.at], m, lane, own, x, sum);
            if (!both) multiply<A>(mine + sh->skew[stage.at][stream], (u32)w.row_bytes, m, lane, own, x, sum);
            if (made.turn) barrier_wait(&sh->added[made.at], (made.turn - 1) & 1);
#pragma unroll
            for (int r = 0; r < A; ++r) sh->sums[made.at].of[r][threadIdx.x] = sum[r];
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&sh->empty[stage.at]), barrier_arrive(&sh->made[made.at]);
            stage.next(w.stages);
            made.next(WAITING);
        }
    }
}

template <int PARTS, bool GATED>
static __device__ void finish(const job<PARTS, GATED> &j, const walk<GATED> &w, int lanes, shared_memory *sh) {
    place made;
    after_previous();
    for (int row = 0; row < j.rows; ++row) {
        int slot = j.table ? j.slot[row] : 0;
        each_stage(j, w, [&](int p, int first, int count) {
            barrier_wait(&sh->made[made.at], made.turn & 1);
            put_stage(j, w, lanes, p, first, count, row, slot, sh->sums[made.at]);
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&sh->added[made.at]);
            made.next(WAITING);
        });
    }
}

template <int PARTS, bool GATED>
static __device__ void streamed(const job<PARTS, GATED> &j, const walk<GATED> &w, const mapping &m, shared_memory *sh,
                                u8 *ring) {
    open(sh, w.stages);
    int warp = threadIdx.x / 32, stages = 0;
    if (warp == PRODUCER) {
        if (threadIdx.x % 32 == 0) produce(j, w, ring, sh);
        return;
    }
    if (warp > PRODUCER) return finish(j, w, m.lanes, sh);
    each_stage(j, w, [&](int, int, int) { ++stages; });
    if (w.at_once == 4)
        consume<4>(j.x, j.rows, j.k, w, stages, ring, sh);
    else if (w.at_once == 2)
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
    mapping m(j.k);
    walk<GATED> w(m, j.k, all);
    bool edge = format::BLOCK == 1 && j.k % format::UNIT, whole = !edge && ((u64)j.x & 15) == 0;
    before_next();
    if (w.first == w.last) return;
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) u8 ring[];
    __shared__ shared_memory sh;
    if (whole && w.stages) return streamed(j, w, m, &sh, ring);
    plain(j, w, m, edge, sh.sums[0]);
#else
    __shared__ shares sums;
    plain(j, w, m, edge, sums);
#endif
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
    BS_KERNEL(THREADS, 2) BS_ENTRY(family, ending)(const float *x, buffers, int rows, int k, sizes) {            \
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

BS_KERNEL(THREADS, 2) BS_ENTRY(linear_, _add)(const float *x, const u8 *w, const float *add, float *y, int rows, int k, int n) {
    run(job<1, false>{x, {{w, nullptr, y, n}}, rows, k, 0, nullptr, nullptr, nullptr, add, 0});
}

BS_KERNEL(THREADS, 2) BS_ENTRY(linear_, _b_add)(const float *x, const u8 *w, const float *b, const float *add, float *y,
                                                int rows, int k, int n) {
    run(job<1, false>{x, {{w, b, y, n}}, rows, k, 0, nullptr, nullptr, nullptr, add, 0});
}

BS_KERNEL(THREADS, 2) BS_ENTRY(linear_, _cap)(const float *x, const u8 *w, float *y, int rows, int k, int n, float cap) {
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
    BS_KERNEL(THREADS, 2) BS_ENTRY(glu_, ending)(const float *x, const u8 *gate, const u8 *up, outs, int rows, int k,  \
                                                 int n, int act) {                                                     \
        run(job<2, true>{x, {{gate, nullptr, y, n}, {up, nullptr, nullptr, n}}, rows, k, act, codes, nullptr, nullptr, \
                         nullptr, 0});                                                                                 \
    }

GLU(, float *y, y, nullptr)
GLU(_q, code_t *yq, nullptr, yq)
GLU(_fq, ARGS(float *y, code_t *yq), y, yq)
#endif
