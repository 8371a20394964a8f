// linear, parts2 to parts4, glu of float activations: matrix products of one weight format.
//
// The outputs of a launch, whatever matrix they are of, are dealt evenly over its blocks, two a
// multiprocessor or, where that is plenty, one, beside which the next launch's comes to lie. Warps work alone: each has a ring of its own, that it fills from before the activations
// exist, and keeps the activations of its slice of a row. Where a row is too long for one warp several
// share it; what they make of it stands in shared memory until the block's outputs are all there.
#include "act.cuh"
#include "activations.cuh"
#include "stream.cuh"

#define WARPS 8
#define THREADS (32 * WARPS)
#define RING_BYTES (12 * 1024) // of a warp
#define MOST_STAGES 12
#define SUMS 4032      // that wait to be added up
#define MOST_CODED (SUMS * 4 * 8 / 9) // values of a row whose codes and scales lie where those do later
#define FEW_BYTES (30 << 20) // of weights, for which half the blocks are enough
#define SLOT (32 * format::UNIT)
#define HELD (EIGHT_BITS ? (format::UNIT > 16 ? 4 : 5) : 48 / format::UNIT) // units of activations that a thread keeps

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

    // The part that has an output, and which of the part's it is.
    __device__ __forceinline__ int part_of(int &output) const {
        int p = 0;
#pragma unroll
        for (int i = 0; i < (GATED ? 0 : PARTS - 1); ++i)
            if (p == i && output >= part[i].n) output -= part[i].n, ++p;
        return p;
    }
};

// A block's outputs, and what of their rows is this warp's: of a row's slots, 32 units each, those from
// `from` to `to`. `split` warps, a team, share a row; `teams` of them take the outputs in turn.
template <int PARTS, bool GATED>
struct share {
    static constexpr int STREAMS = GATED ? 2 : 1;
    int first, outputs, units, split, member, team, teams, from, to;
    bool few; // weights, so that half the blocks do
    i64 row_bytes, offset;
    u32 bytes, pitch;

    __device__ explicit share(const job<PARTS, GATED> &j) {
        int all = 0;
#pragma unroll
        for (int p = 0; p < (GATED ? 1 : PARTS); ++p) all += j.part[p].n;
        row_bytes = format::bytes(j.k);
        few = row_bytes * all * STREAMS < FEW_BYTES;
        int blocks = few ? (gridDim.x + 1) / 2 : gridDim.x, block = min((int)blockIdx.x, blocks);
        first = (int)((i64)all * block / blocks);
        outputs = (int)((i64)all * min(block + 1, blocks) / blocks) - first;
        units = (j.k + format::UNIT - 1) / format::UNIT;
        int slots = (units + 31) / 32;
        for (split = 1; split < WARPS && (slots > split * HELD || pitch_of(slots, split) > RING_BYTES / 4);) split *= 2;
        team = threadIdx.x / 32 / split, member = threadIdx.x / 32 % split, teams = WARPS / split;
        from = slots * member / split, to = slots * (member + 1) / split;
        offset = format::bytes(from * SLOT);
        bytes = (u32)(format::bytes(min(to * SLOT, j.k)) - offset);
        pitch = pitch_of(slots, split);
    }

    // Bytes from one slice to the next in a ring: a copy begins up to 15 early and ends up to 15 late.
    static __device__ __forceinline__ u32 pitch_of(int slots, int split) {
        return ((u32)format::bytes((slots + split - 1) / split * SLOT) + 45) & ~15u;
    }

    // How many rows this team multiplies by one row of activations.
    __device__ __forceinline__ int items() const {
        return outputs > team ? (outputs - team + teams - 1) / teams * STREAMS : 0;
    }
    // Outputs that are added up at a time, of so many rows of activations.
    __device__ __forceinline__ int round(int rows) const { return SUMS / (rows * STREAMS * split) / teams * teams; }

    // The slice of an output's row, of the gate's or the other's; `end` is that of its matrix.
    __device__ __forceinline__ const u8 *slice(const job<PARTS, GATED> &j, int local, int stream, const u8 *&end) const {
        int output = first + local, p = j.part_of(output);
        const u8 *w = GATED && stream ? j.part[PARTS - 1].w : j.part[0].w;
        int n = j.part[0].n;
#pragma unroll
        for (int i = 1; i < (GATED ? 0 : PARTS); ++i)
            if (p == i) w = j.part[i].w, n = j.part[i].n;
        end = w + row_bytes * n;
        return w + row_bytes * output + offset;
    }
};

// Slices as they lie in memory: older devices, and rows that no copy brings.
template <int PARTS, bool GATED>
struct in_place {
    const job<PARTS, GATED> &j;
    const share<PARTS, GATED> &s;

    __device__ __forceinline__ const u8 *arrived(int local, int stream) const {
        const u8 *end;
        return s.slice(j, local, stream, end);
    }
    __device__ __forceinline__ void done() const {}
};

#if __CUDA_ARCH__ >= 900
// Slices on their way through a warp's ring, in the order in which they are multiplied.
template <int PARTS, bool GATED>
struct ring {
    const job<PARTS, GATED> &j;
    const share<PARTS, GATED> &s;
    u8 *memory;
    u64 *full;
    int stages, left, local, stream = 0, asked = 0, at = 0;
    u32 turn = 0;
    bool exact = true; // every slice begins on 16 bytes and is whole sixteens

    __device__ ring(const job<PARTS, GATED> &of, const share<PARTS, GATED> &mine, u8 *stage, u64 *barriers, int passes)
        : j(of), s(mine), memory(stage), full(barriers), left(mine.items() * passes), local(mine.team) {
        stages = min(MOST_STAGES, (int)(RING_BYTES / s.pitch));
#pragma unroll
        for (int p = 0; p < PARTS; ++p) exact = exact && (((u64)j.part[p].w | s.row_bytes | s.offset | s.bytes) & 15) == 0;
        if (threadIdx.x % 32 == 0) {
            for (int i = 0; i < stages; ++i) barrier_init(full + i, 1);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncwarp();
#pragma unroll 1
        for (int i = 0; i < stages; ++i) ask();
        if (s.few && exact) bring_nearer();
    }

    // What the ring does not hold, into the second-level cache: few weights are all there when activations are.
    __device__ __forceinline__ void bring_nearer() const {
        int next = local, which = stream;
#pragma unroll 1
        for (int i = 0; i < min(left, s.items()); ++i) {
            const u8 *end, *from = s.slice(j, next, which, end);
            if (threadIdx.x % 32 == 0) bulk_prefetch(from, s.bytes);
            advance(next, which);
        }
    }
    // The slice after one.
    __device__ __forceinline__ void advance(int &at, int &which) const {
        which = GATED && !which;
        if (which) return;
        at += s.teams;
        if (at >= s.outputs) at = s.team;
    }

    __device__ __forceinline__ void ask() {
        if (left <= 0) return;
        if (threadIdx.x % 32 == 0) {
            const u8 *end, *from = s.slice(j, local, stream, end);
            u8 *to = memory + asked * s.pitch;
            u32 moved = s.bytes;
            if (!exact) {
                moved = bulk_bytes(from, s.bytes, end);
                copy_rest(to, from, s.bytes, end);
            }
            barrier_expect(full + asked, moved);
            if (moved) bulk_copy(to, exact ? from : from - skew(from), moved, full + asked, passing_through());
        }
        if (++asked == stages) asked = 0;
        --left;
        advance(local, stream);
    }
    __device__ __forceinline__ const u8 *arrived(int of, int which) {
        const u8 *end, *lies = memory + at * s.pitch;
        if (!exact) lies += skew(s.slice(j, of, which, end));
        barrier_wait(full + at, turn & 1);
        if (++at == stages) at = 0, ++turn;
        return lies;
    }
    // The last that arrived is used up.
    __device__ __forceinline__ void done() {
        __syncwarp();
        ask();
    }
};
#endif

// --- products --------------------------------------------------------------------------------

// Rounded by itself: a row's bits hang on nothing that is multiplied beside it.
static __device__ __forceinline__ void add(float &sum, float product) { sum = __fadd_rn(sum, product); }

// The activations of one row of them that this thread multiplies, kept.
struct held {
    static constexpr int ROWS = 1, KNOWN = HELD; // rows; numbers of slots that are compiled for
    unit_of_x own[HELD];
    const float *x;
    int units, first, slots, last;

    template <int PARTS, bool GATED>
    __device__ __forceinline__ held(const job<PARTS, GATED> &j, const share<PARTS, GATED> &s, int row, void *room)
        : x(j.x + (i64)row * j.k), units(s.units), first(32 * s.from + threadIdx.x % 32), slots(s.to - s.from),
          last(s.units - 1 - 32 * s.from) {
        if constexpr (EIGHT_BITS)
            if (j.k <= MOST_CODED) {
                take_coded(own, j.k, room);
                return;
            }
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            if (i < slots) load(own[i], i);
    }
    // The block codes the row for all of its warps.
    template <class U>
    __device__ __forceinline__ void take_coded(U (&to)[HELD], int k, void *room) const {
        coded_row row = {(u32 *)room, (float *)((u32 *)room + k / 4)};
        row.code(x, k);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            if (i < slots) to[i].copy(row, min(first + 32 * i, units - 1));
        __syncthreads();
    }
    // Of a unit past the last the last again, which nobody adds up.
    __device__ __forceinline__ void load(unit_of_x &to, int i) const {
        float values[format::UNIT];
        load_values(values, x, min(first + 32 * i, units - 1));
        to.take(values);
    }
    // Only the last slot may end among its lanes.
    __device__ __forceinline__ float at_end(const unit_of_x &of, const u8 *slice, int i) const {
        int u = 32 * i + threadIdx.x % 32;
        float made = of.dot(slice, min(u, last));
        return u <= last ? made : 0.f;
    }
    // A slice's product, its slots all of those kept or N of them: what a thread multiplies waits for nothing
    // in between.
    template <int N>
    __device__ __forceinline__ void multiply(const u8 *slice, float (&sum)[1]) const {
        sum[0] = 0;
#pragma unroll
        for (int i = 0; i < N - 1; ++i) add(sum[0], own[i].dot(slice, 32 * i + threadIdx.x % 32));
        add(sum[0], at_end(own[N - 1], slice, N - 1));
        if constexpr (N == HELD)
            for (int i = HELD; i < slots; ++i) {
                unit_of_x more;
                load(more, i);
                add(sum[0], at_end(more, slice, i));
            }
    }
};

// The same of several rows, read again for each slice: weights are read once for all of them.
struct passing {
    static constexpr int ROWS = 8, KNOWN = 1;
    const float *x;
    int units, first, slots, k, rows;

    template <int PARTS, bool GATED>
    __device__ __forceinline__ passing(const job<PARTS, GATED> &j, const share<PARTS, GATED> &s, int row, void *)
        : x(j.x + (i64)row * j.k), units(s.units), first(32 * s.from + threadIdx.x % 32), slots(s.to - s.from), k(j.k),
          rows(min(ROWS, j.rows - row)) {}

    template <int>
    __device__ __forceinline__ void multiply(const u8 *slice, float (&sum)[ROWS]) const {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) sum[r] = 0;
        int last = units - 1 - first + threadIdx.x % 32;
#pragma unroll 2
        for (int i = 0; i < slots; ++i) {
            int u = 32 * i + threadIdx.x % 32;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                if (r >= rows) break;
                float values[format::UNIT];
                unit_of_x x_of;
                load_values(values, x + (i64)r * k, min(first + 32 * i, units - 1));
                x_of.take(values);
                float made = x_of.dot(slice, min(u, last));
                add(sum[r], u <= last ? made : 0.f);
            }
        }
    }
};

// Rows that are no whole units, or activations that do not lie on 16 bytes: value by value.
struct uneven {
    static constexpr int ROWS = 1, KNOWN = 1;
    const float *x;
    int units, first, slots, k;

    template <int PARTS, bool GATED>
    __device__ __forceinline__ uneven(const job<PARTS, GATED> &j, const share<PARTS, GATED> &s, int row, void *)
        : x(j.x + (i64)row * j.k), units(s.units), first(32 * s.from + threadIdx.x % 32), slots(s.to - s.from), k(j.k) {}

    template <int>
    __device__ void multiply(const u8 *slice, float (&sum)[1]) const {
        sum[0] = 0;
        for (int i = 0; i < slots; ++i) {
            int u = first + 32 * i;
            float values[format::UNIT];
            load_each(values, x, u, k);
            if constexpr (format::BLOCK == 1) {
                if (u < units) add(sum[0], edge_dot(slice - format::bytes((first - threadIdx.x % 32) * format::UNIT), u, values, k));
            } else {
                unit_of_x of;
                of.take(values);
                if (u < units) add(sum[0], of.dot(slice, 32 * i + threadIdx.x % 32));
            }
        }
    }
};

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
template <int PARTS, bool GATED>
struct placed {
    const share<PARTS, GATED> &s;
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
template <int PARTS, bool GATED>
static __device__ __forceinline__ void put_all(const job<PARTS, GATED> &j, const placed<PARTS, GATED> &from, int row, int rows) {
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
template <int N, class X, int PARTS, bool GATED, class Weights>
static __device__ __forceinline__ void multiply_round(const X &x, const placed<PARTS, GATED> &to, Weights &w, int rows) {
    constexpr int V = X::ROWS, STREAMS = GATED ? 2 : 1;
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

template <int N, class X, int PARTS, bool GATED, class Weights>
static __device__ __forceinline__ void multiply_slots(const X &x, const placed<PARTS, GATED> &to, Weights &w, int rows) {
    if (N == X::KNOWN || x.slots == N) return multiply_round<N>(x, to, w, rows);
    if constexpr (N < X::KNOWN) multiply_slots<N + 1>(x, to, w, rows);
}

// A group of rows of activations after another, each a round of outputs after another.
template <class X, int PARTS, bool GATED, class Weights>
static __device__ __forceinline__ void multiply_all(const job<PARTS, GATED> &j, const share<PARTS, GATED> &s, Weights &w,
                                                    float *sums) {
    int round = s.round(X::ROWS);
    for (int row = 0; row < j.rows; row += X::ROWS) {
        if (row) __syncthreads();
        X x(j, s, row, sums);
        int rows = min(X::ROWS, j.rows - row);
        for (int first = 0; first < s.outputs; first += round) {
            placed<PARTS, GATED> to{s, sums, first, min(s.outputs, first + round)};
            if (first) __syncthreads();
            multiply_slots<1>(x, to, w, rows);
            __syncthreads();
            put_all(j, to, row, rows);
        }
    }
}

// Activations in eight bits are kept, a row after another: to read them again would be to code them again.
template <bool EIGHT>
struct several {
    typedef passing rows;
};
template <>
struct several<true> {
    typedef held rows;
};
typedef several<EIGHT_BITS>::rows several_rows;

template <int PARTS, bool GATED>
static __device__ __forceinline__ void run(const job<PARTS, GATED> &j) {
    __shared__ __align__(16) float sums[SUMS];
    share<PARTS, GATED> s(j);
    in_place<PARTS, GATED> lying{j, s};
    bool even = ((u64)j.x & 15) == 0 && (format::BLOCK > 1 || j.k % format::UNIT == 0);
    before_next();
    if (s.outputs == 0) return;
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) u8 rings[];
    __shared__ u64 full[WARPS * MOST_STAGES];
    if (even && 2 * s.pitch <= RING_BYTES) {
        int warp = threadIdx.x / 32, group = j.rows == 1 ? 1 : several_rows::ROWS;
        ring<PARTS, GATED> r(j, s, rings + warp * RING_BYTES, full + warp * MOST_STAGES, (j.rows + group - 1) / group);
        after_previous();
        if (several_rows::ROWS == 1 || j.rows == 1) return multiply_all<held>(j, s, r, sums);
        return multiply_all<several_rows>(j, s, r, sums);
    }
#endif
    after_previous();
    if (even)
        multiply_all<passing>(j, s, lying, sums);
    else
        multiply_all<uneven>(j, s, lying, sums);
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
