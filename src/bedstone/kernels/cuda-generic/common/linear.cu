// linear, parts2 to parts4, glu of float activations: matrix products of one weight format.
//
// The outputs of a launch, whatever matrix they are of, are dealt evenly over its blocks, one block a
// multiprocessor. One thread streams the block's weights through a ring; the others hold the activations
// in registers, each the same few units of every row, and add their shares up row by row. So weights
// are read once, in order, and from before the activations exist.
#include "act.cuh"
#include "stream.cuh"
#include "weights.cuh"

#define CONSUMERS 256
#define THREADS (CONSUMERS + 32)
#define WARPS (CONSUMERS / 32)
#define MOST_PARTS 4
#define STAGE_ROWS 32 // rows of weights that a stage holds at most
#define AT_ONCE 4     // rows a thread multiplies at a time
#define MANY (48 / format::UNIT) // units of activations that a thread keeps in registers
#define FEW 1 // the same where they do not all fit

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

// Rows [first, first + count) of the part `of`.
struct share {
    int of, first, count;
};

// The outputs of one block, and how they go by stage after stage.
struct walk {
    i64 row_bytes;
    int first, last, at_most;

    __device__ walk(const job &j, int streams) {
        row_bytes = format::bytes(j.k);
        int all = 0;
        for (int p = 0; p < (j.gated ? 1 : j.parts); ++p) all += j.part[p].n;
        first = (int)((i64)all * blockIdx.x / gridDim.x);
        last = (int)((i64)all * (blockIdx.x + 1) / gridDim.x);
        i64 fit = BS_STAGE_BYTES / (row_bytes * streams);
        at_most = fit < 1 ? 1 : fit > STAGE_ROWS / streams ? STAGE_ROWS / streams : (int)fit;
    }

    // The stage that begins at output `from`.
    __device__ share stage(const job &j, int from) const {
        int of = 0;
        int left = last - from;
        while (!j.gated && from >= j.part[of].n) from -= j.part[of++].n;
        int count = min(min(at_most, left), j.part[of].n - from);
        return {of, from, count};
    }
};

// How threads lie on a row: `lanes` of them, a power of two, share it; `groups` rows go side by side.
struct mapping {
    int units, lanes, groups, group, lane;

    __device__ explicit mapping(int k) {
        units = (k + format::UNIT - 1) / format::UNIT;
        lanes = 32;
        while (lanes < units && lanes < CONSUMERS) lanes *= 2;
        groups = CONSUMERS / lanes;
        group = threadIdx.x / lanes;
        lane = threadIdx.x % lanes;
    }
};

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

static __device__ __forceinline__ float load_unit(float *to, const float *x, int u, int k) {
    float sum = 0;
#pragma unroll
    for (int p = 0; p < format::UNIT / 4; ++p) {
        load_piece(to + 4 * p, x, format::at(u, p), k);
        sum += (to[4 * p] + to[4 * p + 1]) + (to[4 * p + 2] + to[4 * p + 3]);
    }
    return sum;
}

// A unit's product. Rows that are no whole units, or do not begin on 16 bytes, go value by value.
template <bool EDGE>
static __device__ __forceinline__ float unit_dot(const u8 *row, int u, const float *x, float all, int k) {
    if (!EDGE) return format::dot(row, u, x, all);
    float sum = 0;
    for (int p = 0; p < format::UNIT / 4; ++p)
        for (int j = 0; j < 4; ++j) {
            int i = format::at(u, p) + j;
            if (i < k) sum = fmaf(format::value(row, i), x[4 * p + j], sum);
        }
    return sum;
}

// The sums of four values over a warp: the one of value `lane / 8` in every lane.
static __device__ __forceinline__ float warp_sum4(const float *v, int lane) {
    bool high = lane & 16, odd = lane & 8;
    float a = (high ? v[2] : v[0]) + __shfl_xor_sync(BS_FULL, high ? v[0] : v[2], 16);
    float b = (high ? v[3] : v[1]) + __shfl_xor_sync(BS_FULL, high ? v[1] : v[3], 16);
    float sum = (odd ? b : a) + __shfl_xor_sync(BS_FULL, odd ? a : b, 8);
    sum += __shfl_xor_sync(BS_FULL, sum, 4);
    sum += __shfl_xor_sync(BS_FULL, sum, 2);
    return sum + __shfl_xor_sync(BS_FULL, sum, 1);
}

static __device__ __forceinline__ void consumers_meet() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

typedef float partial_sums[STAGE_ROWS][WARPS];

// Each warp's shares of the rows of a stage, `count` of them from `base` on.
template <int SLOTS, bool EDGE>
static __device__ __forceinline__ void multiply(const u8 *base, i64 row_bytes, int count, const mapping &m,
                                                const float (*x)[format::UNIT], const float *all,
                                                const float *far, int k, float (*sums)[WARPS]) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % (m.lanes / 32);
    for (int from = m.group; from < count; from += AT_ONCE * m.groups) {
        const u8 *row[AT_ONCE];
        float sum[AT_ONCE] = {0};
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) row[j] = base + row_bytes * min(from + j * m.groups, count - 1);
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            int u = m.lane + s * m.lanes;
            if (u >= m.units) break;
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) sum[j] += unit_dot<EDGE>(row[j], u, x[s], all[s], k);
        }
        // what does not fit the registers is read again for every few rows
        for (int u = m.lane + SLOTS * m.lanes; SLOTS == FEW && u < m.units; u += m.lanes) {
            float more[format::UNIT];
            float more_all = load_unit(more, far, u, k);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) sum[j] += unit_dot<EDGE>(row[j], u, more, more_all, k);
        }
        float whole = warp_sum4(sum, lane);
        int mine = from + lane / 8 * m.groups;
        if (lane % 8 == 0 && mine < count) sums[mine][warp] = whole;
    }
}

static __device__ __forceinline__ float row_sum(const float *sums, const mapping &m) {
    float sum = sums[0];
    for (int w = 1; w < m.lanes / 32; ++w) sum += sums[w];
    return sum;
}

// Output `i` of a part, for activation row `row`.
static __device__ __forceinline__ void put(const job &j, int of, int i, int row, float value) {
    const matrix &part = j.part[of];
    if (part.bias) value += part.bias[i];
    if (!j.table || of != j.parts - 1) {
        part.y[(i64)row * part.n + i] = value;
    } else if (j.slot[row] >= 0) {
        j.table[(i64)j.slot[row] * part.n + i] = from_f32<cache_t>(value);
    }
}

static __device__ __forceinline__ void put_gated(const job &j, int i, int row, float gate, float up) {
    float value = gated(gate, up, j.act);
    i64 at = (i64)row * j.part[0].n + i;
    if (j.part[0].y) j.part[0].y[at] = value;
    if (j.codes) j.codes[at] = from_f32<code_t>(value);
}

static __device__ __forceinline__ void put_stage(const job &j, const share &s, int row, const mapping &m,
                                                 const float (*sums)[WARPS]) {
    for (int i = threadIdx.x; i < s.count; i += CONSUMERS) {
        float value = row_sum(sums[i], m);
        if (j.gated)
            put_gated(j, s.first + i, row, value, row_sum(sums[STAGE_ROWS / 2 + i], m));
        else
            put(j, s.of, s.first + i, row, value);
    }
}

// The stages of the ring: `stages` slots, in each the rows of every stream.
struct ring {
    int stages;
    u32 slot_bytes, stream_bytes;

    __device__ ring(const walk &w, int streams) {
        stream_bytes = ((u32)(w.row_bytes * w.at_most) + 47) & ~15u; // a copy begins up to 15 bytes early
        slot_bytes = stream_bytes * (u32)streams;
        stages = min(BS_MOST_STAGES, (int)(BS_RING_BYTES / slot_bytes));
    }
};

// A slot of the ring and how often it was used before, for either side.
struct place {
    int slot = 0;
    u32 turn = 0;

    __device__ __forceinline__ void next(int stages) {
        if (++slot == stages) slot = 0, ++turn;
    }
};

struct shared_memory {
    partial_sums sums[2];
    u64 full[BS_MOST_STAGES], empty[BS_MOST_STAGES];
};

// The matrix that a stream of a stage is of.
static __device__ __forceinline__ const matrix &stream_of(const job &j, const share &s, int stream) {
    return j.part[j.gated ? stream : s.of];
}

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void fill(const job &j, const walk &w, const share &s, int streams, u8 *slot,
                                            u32 stream_bytes, u64 *full) {
    u32 bytes = (u32)(w.row_bytes * s.count), total = 0, moved[2];
    const u8 *rows[2];
    for (int i = 0; i < streams; ++i) {
        const matrix &m = stream_of(j, s, i);
        const u8 *end = m.w + w.row_bytes * m.n;
        rows[i] = m.w + w.row_bytes * s.first;
        moved[i] = bulk_bytes(rows[i], bytes, end);
        total += moved[i];
        copy_rest(slot + i * stream_bytes, rows[i], bytes, end);
    }
    barrier_expect(full, total);
    for (int i = 0; i < streams; ++i)
        if (moved[i]) bulk_copy(slot + i * stream_bytes, rows[i] - skew(rows[i]), moved[i], full);
}

static __device__ void produce(const job &j, const walk &w, const ring &r, int streams, u8 *slots, shared_memory *sh) {
    place at;
    for (int row = 0; row < j.rows; ++row)
        for (int from = w.first; from < w.last; at.next(r.stages)) {
            share s = w.stage(j, from);
            if (at.turn) barrier_wait(&sh->empty[at.slot], (at.turn - 1) & 1);
            fill(j, w, s, streams, slots + at.slot * r.slot_bytes, r.stream_bytes, &sh->full[at.slot]);
            from += s.count;
        }
}
#endif

// The consumers' side, over a ring or, where rows are too long for one, over memory itself.
template <int SLOTS, bool EDGE, bool RING>
static __device__ void consume(const job &j, const walk &w, const ring &r, int streams, const u8 *slots,
                                            shared_memory *sh) {
    mapping m(j.k);
    place at;
    int parity = 0;
    after_previous();
    for (int row = 0; row < j.rows; ++row) {
        const float *x = j.x + (i64)row * j.k;
        float own[SLOTS][format::UNIT], all[SLOTS];
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) all[s] = load_unit(own[s], x, m.lane + s * m.lanes, j.k);
        for (int from = w.first; from < w.last; parity ^= 1) {
            share s = w.stage(j, from);
            float(*sums)[WARPS] = sh->sums[parity];
#if __CUDA_ARCH__ >= 900
            if (RING) barrier_wait(&sh->full[at.slot], at.turn & 1);
#endif
            for (int i = 0; i < streams; ++i) {
                const u8 *rows = stream_of(j, s, i).w + w.row_bytes * s.first;
                const u8 *base = RING ? slots + at.slot * r.slot_bytes + i * r.stream_bytes + ((u32)(u64)rows & 15) : rows;
                multiply<SLOTS, EDGE>(base, w.row_bytes, s.count, m, own, all, x, j.k, sums + i * (STAGE_ROWS / 2));
            }
            consumers_meet();
#if __CUDA_ARCH__ >= 900
            if (RING && threadIdx.x == 0) barrier_arrive(&sh->empty[at.slot]);
#endif
            put_stage(j, s, row, m, sums);
            if (RING) at.next(r.stages);
            from += s.count;
        }
    }
}

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void open_ring(const ring &r, shared_memory *sh) {
    if (threadIdx.x == CONSUMERS) {
        for (int i = 0; i < r.stages; ++i) barrier_init(&sh->full[i], 1), barrier_init(&sh->empty[i], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
}
#endif

static __device__ void run(const job &j) {
    extern __shared__ __align__(128) u8 slots[];
    __shared__ shared_memory sh;
    int streams = j.gated ? 2 : 1;
    walk w(j, streams);
    ring r(w, streams);
    before_next();
    if (w.first == w.last) return;
    bool edge = format::BLOCK == 1 && j.k % format::UNIT;
#if __CUDA_ARCH__ >= 900
    if (r.stages >= 2 && !edge && j.k <= MANY * format::UNIT * CONSUMERS) {
        open_ring(r, &sh);
        if (threadIdx.x == CONSUMERS) produce(j, w, r, streams, slots, &sh);
        if (threadIdx.x < CONSUMERS) consume<MANY, false, true>(j, w, r, streams, slots, &sh);
        return;
    }
#endif
    if (threadIdx.x >= CONSUMERS) return;
    if (format::BLOCK == 1 && edge)
        consume<FEW, true, false>(j, w, r, streams, slots, &sh);
    else
        consume<FEW, false, false>(j, w, r, streams, slots, &sh);
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
