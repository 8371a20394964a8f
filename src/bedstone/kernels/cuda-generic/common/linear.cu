// linear, parts2 to parts4, glu of float activations: matrix products of one weight format.
//
// The outputs of a launch, whatever matrix they are of, are dealt evenly over its blocks, one block a
// multiprocessor. A warp streams the block's weights through a ring, from before the activations exist;
// eight warps hold the activations in registers, each thread the same few units of every row, and
// multiply four rows at a time; a last warp adds up what those eight make of a row and puts it where it
// belongs. Nobody waits for anybody but through barriers of the ring.
#include "act.cuh"
#include "stream.cuh"
#include "weights.cuh"

#define CONSUMERS 256
#define PRODUCER (CONSUMERS / 32)
#define FINISHER (PRODUCER + 1)
#define THREADS (CONSUMERS + 64)
#define WARPS (CONSUMERS / 32)
#define MOST_PARTS 4
#define AT_ONCE 4                 // rows of weights that a thread multiplies at a time
#define MOST_ROWS 32              // rows of weights of one set: AT_ONCE for each group of threads
#define MANY (48 / format::UNIT)  // units of activations that a thread keeps in registers: see lanes_of
#define SETS 4                    // sets whose sums wait to be added up

struct matrix {
    const u8 *w;
    const float *bias;
    float *y;
    int n;
};

// What a launch computes. With `gated`, act(x part[0]) * (x part[1]); else each part, the last into
// rows `slot` of `table` where there is one.
struct job {
    const float *x;
    matrix part[MOST_PARTS];
    int parts, rows, k;
    bool gated;
    int act;
    code_t *codes;
    cache_t *table;
    const int *slot;
};

// How threads lie on a row: `lanes` of them share it; `groups` of them go side by side.
struct mapping {
    int units, lanes, groups, slots;

    __device__ explicit mapping(int k) {
        units = (k + format::UNIT - 1) / format::UNIT;
        lanes = lanes_of<format>(units);
        groups = CONSUMERS / lanes;
        slots = (units + lanes - 1) / lanes;
    }
};

// Outputs [first, first + count) of the part `of`: what all groups make in one pass over k.
struct set {
    int of, first, count;
};

// The outputs of one block, and how its rows are cut: `slots` segments, one unit of each lane wide.
struct walk {
    mapping m;
    i64 row_bytes;
    u32 segment_bytes, row_pitch;
    int first, last, at_most;

    __device__ explicit walk(const job &j) : m(j.k) {
        row_bytes = format::bytes(j.k);
        segment_bytes = (u32)format::bytes(m.lanes * format::UNIT);
        row_pitch = (min(segment_bytes, (u32)row_bytes) + 47) & ~15u; // a copy begins up to 15 bytes early
        int all = 0;
        for (int p = 0; p < (j.gated ? 1 : j.parts); ++p) all += j.part[p].n;
        first = (int)((i64)all * blockIdx.x / gridDim.x);
        last = (int)((i64)all * (blockIdx.x + 1) / gridDim.x);
        at_most = m.groups * (j.gated ? AT_ONCE / 2 : AT_ONCE);
    }

    __device__ __forceinline__ set at(const job &j, int from) const {
        int of = 0, left = last - from;
        while (!j.gated && from >= j.part[of].n) from -= j.part[of++].n;
        return {of, from, min(min(at_most, left), j.part[of].n - from)};
    }
};

// The row that stands `i`th in a set: which output it is for, and of which matrix. A gated unit's four
// are two of the gate and the same two of the other.
static __device__ __forceinline__ int output_of(const job &j, int i) {
    return j.gated ? i / AT_ONCE * 2 + i % 2 : i;
}

static __device__ __forceinline__ const matrix &matrix_of(const job &j, const set &s, int i) {
    return j.part[j.gated ? i % AT_ONCE / 2 : s.of];
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

// The sums of four values over a warp: the one of value `lane / 8` in every lane.
static __device__ __forceinline__ float warp_sum4(const float *v) {
    bool high = threadIdx.x & 16, odd = threadIdx.x & 8;
    float a = (high ? v[2] : v[0]) + __shfl_xor_sync(BS_FULL, high ? v[0] : v[2], 16);
    float b = (high ? v[3] : v[1]) + __shfl_xor_sync(BS_FULL, high ? v[1] : v[3], 16);
    float sum = (odd ? b : a) + __shfl_xor_sync(BS_FULL, odd ? a : b, 8);
    sum += __shfl_xor_sync(BS_FULL, sum, 4);
    sum += __shfl_xor_sync(BS_FULL, sum, 2);
    return sum + __shfl_xor_sync(BS_FULL, sum, 1);
}

// --- results ---------------------------------------------------------------------------------

typedef float set_sums[MOST_ROWS][WARPS];

static __device__ __forceinline__ void put(const job &j, int of, int i, int row, float value) {
    const matrix &part = j.part[of];
    if (part.bias) value += part.bias[i];
    if (!j.table || of != j.parts - 1) {
        part.y[(i64)row * part.n + i] = value;
    } else if (j.slot[row] >= 0) {
        j.table[(i64)j.slot[row] * part.n + i] = from_f32<cache_t>(value);
    }
}

static __device__ __forceinline__ void put_gated(const job &j, int i, int row, float value) {
    i64 at = (i64)row * j.part[0].n + i;
    if (j.part[0].y) j.part[0].y[at] = value;
    if (j.codes) j.codes[at] = from_f32<code_t>(value);
}

// A set's results, by one warp: lane i has the row that stands ith.
static __device__ __forceinline__ void put_set(const job &j, const set &s, int row, const mapping &m,
                                               const set_sums &sums) {
    int i = threadIdx.x % 32;
    float value = sums[i][0];
    for (int w = 1; w < m.lanes / 32; ++w) value += sums[i][w];
    float up = __shfl_down_sync(BS_FULL, value, 2);
    int output = output_of(j, i);
    if (i >= AT_ONCE * m.groups || output >= s.count) return;
    if (!j.gated)
        put(j, s.of, s.first + output, row, value);
    else if (i % AT_ONCE < 2)
        put_gated(j, s.first + output, row, gated(value, up, j.act));
}

// --- without a ring: older devices, and rows that no bulk copy can cut -----------------------

static __device__ void plain(const job &j, const walk &w, bool edge, set_sums &sums) {
    const mapping &m = w.m;
    int group = threadIdx.x / m.lanes, lane = threadIdx.x % m.lanes;
    after_previous();
    for (int row = 0; row < j.rows; ++row)
        for (int from = w.first; from < w.last;) {
            set s = w.at(j, from);
            float sum[AT_ONCE] = {0};
            for (int slot = 0; threadIdx.x < CONSUMERS && slot < m.slots; ++slot) {
                int u = lane + slot * m.lanes;
                unit_of_x x;
                if (!edge) x.load(j.x + (i64)row * j.k, u, j.k);
                if (u >= m.units) continue;
                float values[format::UNIT];
                load_values(values, j.x + (i64)row * j.k, u, j.k);
                for (int i = 0; i < AT_ONCE; ++i) {
                    int stands = group * AT_ONCE + i;
                    int output = s.first + min(output_of(j, stands), s.count - 1);
                    const u8 *weights = matrix_of(j, s, stands).w + w.row_bytes * output;
                    sum[i] += edge ? edge_dot(weights, u, values, j.k) : x.dot(weights, u);
                }
            }
            float whole = warp_sum4(sum);
            if (threadIdx.x < CONSUMERS && threadIdx.x % 8 == 0)
                sums[group * AT_ONCE + threadIdx.x % 32 / 8][lane / 32] = whole;
            __syncthreads();
            if (threadIdx.x / 32 == FINISHER) put_set(j, s, row, m, sums);
            __syncthreads();
            from += s.count;
        }
}

#if __CUDA_ARCH__ >= 900
// --- the ring --------------------------------------------------------------------------------

struct shared_memory {
    set_sums sums[SETS];
    u64 full[BS_MOST_STAGES], empty[BS_MOST_STAGES];
    u64 made[SETS], added[SETS];
};

// A place in a ring of `count`, and how often the ring went round before.
struct place {
    int at = 0;
    u32 turn = 0;

    __device__ __forceinline__ void next(int count) {
        if (++at == count) at = 0, ++turn;
    }
};

struct ring {
    int stages;
    u32 stage_bytes;
    u8 *slots;

    __device__ ring(const walk &w, u8 *memory) : slots(memory) {
        stage_bytes = w.row_pitch * AT_ONCE * w.m.groups;
        stages = min(BS_MOST_STAGES, (int)(BS_RING_BYTES / stage_bytes));
    }
};

static __device__ __forceinline__ void open(shared_memory *sh, int stages) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < stages; ++i) barrier_init(&sh->full[i], 1), barrier_init(&sh->empty[i], WARPS);
        for (int i = 0; i < SETS; ++i) barrier_init(&sh->made[i], WARPS), barrier_init(&sh->added[i], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
}

// One segment of a set's rows into a stage, a lane a row.
static __device__ __forceinline__ void fill(const job &j, const walk &w, const set &s, int segment, u8 *stage,
                                            u64 *full) {
    int i = threadIdx.x % 32, output = output_of(j, i);
    u32 from = segment * w.segment_bytes, moved = 0, bytes = min(w.segment_bytes, (u32)w.row_bytes - from);
    const u8 *rows = nullptr;
    u8 *to = stage + i * w.row_pitch;
    if (i < AT_ONCE * w.m.groups && output < s.count) {
        const matrix &m = matrix_of(j, s, i);
        const u8 *end = m.w + w.row_bytes * m.n;
        rows = m.w + w.row_bytes * (s.first + output) + from;
        moved = bulk_bytes(rows, bytes, end);
        copy_rest(to, rows, bytes, end);
    }
    u32 total = __reduce_add_sync(BS_FULL, moved);
    __syncwarp();
    if (i == 0) barrier_expect(full, total);
    __syncwarp();
    if (moved) bulk_copy(to, rows - skew(rows), moved, full);
}

static __device__ void produce(const job &j, const walk &w, const ring &r, shared_memory *sh) {
    place stage;
    for (int row = 0; row < j.rows; ++row)
        for (int from = w.first; from < w.last;) {
            set s = w.at(j, from);
            for (int segment = 0; segment < w.m.slots; ++segment, stage.next(r.stages)) {
                if (stage.turn) barrier_wait(&sh->empty[stage.at], (stage.turn - 1) & 1);
                fill(j, w, s, segment, r.slots + stage.at * r.stage_bytes, &sh->full[stage.at]);
            }
            from += s.count;
        }
}

// Where a thread's rows of a set lie among 16 bytes, a segment after another: all segments alike.
struct skews {
    u32 of[AT_ONCE];

    __device__ __forceinline__ skews(const job &j, const walk &w, const set &s, int group) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            int stands = group * AT_ONCE + i;
            of[i] = skew(matrix_of(j, s, stands).w + w.row_bytes * (s.first + output_of(j, stands)));
        }
    }
};

static __device__ __forceinline__ void multiply(const u8 *rows, u32 pitch, const skews &skewed, int lane,
                                                const unit_of_x &x, float (&sum)[AT_ONCE]) {
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) sum[i] += x.dot(rows + i * pitch + skewed.of[i], lane);
}

static __device__ void consume(const job &j, const walk &w, const ring &r, shared_memory *sh) {
    const mapping &m = w.m;
    int group = threadIdx.x / m.lanes, lane = threadIdx.x % m.lanes;
    place stage, made;
    after_previous();
    for (int row = 0; row < j.rows; ++row) {
        const float *x = j.x + (i64)row * j.k;
        unit_of_x own[MANY];
#pragma unroll
        for (int s = 0; s < MANY; ++s) own[s].load(x, lane + s * m.lanes, j.k);
        for (int from = w.first; from < w.last; made.next(SETS)) {
            set s = w.at(j, from);
            skews skewed(j, w, s, group);
            float sum[AT_ONCE] = {0};
            auto segment = [&](int unit, const unit_of_x &of) {
                barrier_wait(&sh->full[stage.at], stage.turn & 1);
                const u8 *rows = r.slots + stage.at * r.stage_bytes + group * AT_ONCE * w.row_pitch;
                if (unit < m.units) multiply(rows, w.row_pitch, skewed, lane, of, sum);
                __syncwarp();
                if (threadIdx.x % 32 == 0) barrier_arrive(&sh->empty[stage.at]);
                stage.next(r.stages);
            };
#pragma unroll
            for (int i = 0; i < MANY; ++i)
                if (i < m.slots) segment(lane + i * m.lanes, own[i]);
            for (int i = MANY; i < m.slots; ++i) {
                unit_of_x more;
                more.load(x, lane + i * m.lanes, j.k);
                segment(lane + i * m.lanes, more);
            }
            float whole = warp_sum4(sum);
            if (made.turn) barrier_wait(&sh->added[made.at], (made.turn - 1) & 1);
            if (threadIdx.x % 8 == 0)
                sh->sums[made.at][group * AT_ONCE + threadIdx.x % 32 / 8][lane / 32] = whole;
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&sh->made[made.at]);
            from += s.count;
        }
    }
}

static __device__ void finish(const job &j, const walk &w, shared_memory *sh) {
    place made;
    after_previous();
    for (int row = 0; row < j.rows; ++row)
        for (int from = w.first; from < w.last; made.next(SETS)) {
            set s = w.at(j, from);
            barrier_wait(&sh->made[made.at], made.turn & 1);
            put_set(j, s, row, w.m, sh->sums[made.at]);
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&sh->added[made.at]);
            from += s.count;
        }
}

static __device__ void streamed(const job &j, const walk &w, shared_memory *sh, u8 *memory) {
    ring r(w, memory);
    open(sh, r.stages);
    int warp = threadIdx.x / 32;
    if (warp == PRODUCER)
        produce(j, w, r, sh);
    else if (warp == FINISHER)
        finish(j, w, sh);
    else
        consume(j, w, r, sh);
}
#endif

static __device__ void run(const job &j) {
    walk w(j);
    bool edge = format::BLOCK == 1 && j.k % format::UNIT;
    before_next();
    if (w.first == w.last) return;
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) u8 memory[];
    __shared__ shared_memory sh;
    if (!edge) return streamed(j, w, &sh, memory);
    plain(j, w, edge, sh.sums[0]);
#else
    __shared__ set_sums sums;
    plain(j, w, edge, sums);
#endif
}

// --- entries ---------------------------------------------------------------------------------

#define ARGS(...) __VA_ARGS__

#define LINEAR(family, ending, count, buffers, sizes, table, slot, ...)                                          \
    BS_KERNEL(THREADS, 2) BS_ENTRY(family, ending)(const float *x, buffers, int rows, int k, sizes) {               \
        run({x, {__VA_ARGS__}, count, rows, k, false, 0, nullptr, table, slot});                                 \
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
        run({x, {{gate, nullptr, y, n}, {up, nullptr, nullptr, n}}, 2, rows, k, true, act, codes, nullptr, nullptr});  \
    }

GLU(, float *y, y, nullptr)
GLU(_q, code_t *yq, nullptr, yq)
GLU(_fq, ARGS(float *y, code_t *yq), y, yq)
