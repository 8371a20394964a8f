// decay, delta, delta_gates: the gated delta rule on a state [dk, dv] of each head.
//
// What a column of a state becomes depends on no other. A block is COLUMNS of one head's in one
// sequence; SHARES lanes of a warp hold a column in registers, each every SHARES-th four of its dk
// values, and go through the rows of a sequence with it.
#include "act.cuh"
#include "part.cuh"

#define COLUMNS 32
#define SHARES 8
#define THREADS (COLUMNS * SHARES)
#define STAGE 16  // rows laid into shared memory at a time: two such stages take turns
#define MOST_DK 256

// -exp(a_log) * softplus(a + dt)
static __device__ __forceinline__ float decayed(float a, float a_log, float dt) {
    return -expf(a_log) * softplus(a + dt);
}

BS_KERNEL(256)
decay(const float *a, const float *a_log, const float *dt, float *y, int rows, int heads, WINDOW(a)) {
    i64 row = blockIdx.x;
    before_next();
    after_previous();
    for (int i = threadIdx.x; i < heads; i += 256)
        y[row * heads + i] = decayed(a[WINDOW_OF(a).at(row, i)], a_log[i], dt[i]);
}

struct Delta {
    const float *q, *k, *v;
    const float *g, *beta;  // [rows, heads], or null: made of what follows
    const float *a, *b, *a_log, *dt;
    Window from_a, from_b;
    const int *line, *position;
    float *state, *y;
    int rows, seqs, key_heads, heads, dk, dv;
    float scale;
};

// What one row does to one head's state: the factor on it, and how much of the row it takes in.
struct Gates {
    float shrink, beta;
};

// Of a row and a head, what gates are made of: a factor's logarithm, or what that is made of; a share,
// or what it is made of.
static __device__ __forceinline__ float2 read_gates(const Delta &d, i64 row, int head) {
    i64 at = row * d.heads + head;
    if (d.g) return make_float2(d.g[at], d.beta[at]);
    return make_float2(d.a[d.from_a.at(row, head)], d.b[d.from_b.at(row, head)]);
}

static __device__ __forceinline__ Gates gates_of(const Delta &d, float2 from, int head) {
    if (d.g) return Gates{expf(from.x), from.y};
    return Gates{expf(decayed(from.x, d.a_log[head], d.dt[head])), sigmoid(from.y)};
}

static __device__ __forceinline__ void copy_float(float *to, const float *from) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}

static __device__ __forceinline__ void copy_four(float *to, const float *from) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

// Some rows in shared memory: keys and queries, of dk values and zeros up to `pitch`; values; gates.
struct Stage {
    float *k, *q, *v;
    Gates *gates;
    int pitch;

    __device__ __forceinline__ Stage(float *memory, int which, int dk) : pitch((dk + 31) / 32 * 32) {
        k = memory + which * (STAGE * (2 * pitch + COLUMNS + 2));
        q = k + STAGE * pitch;
        v = q + STAGE * pitch;
        gates = (Gates *)(v + STAGE * COLUMNS);
    }

    __device__ __forceinline__ void clear_ends(int dk) const {
        int ends = pitch - dk;
        for (int i = threadIdx.x; i < 2 * STAGE * ends; i += THREADS) k[i / ends * pitch + dk + i % ends] = 0.0f;
    }

    // Sends for keys, queries and values; a warp takes a row after another.
    __device__ __forceinline__ void fetch(const Delta &d, i64 first, int rows, int head, int column, bool fours) const {
        int key_head = head / (d.heads / d.key_heads), lane = threadIdx.x % 32;
        for (int row = threadIdx.x / 32; row < rows; row += THREADS / 32) {
            i64 key = ((first + row) * d.key_heads + key_head) * d.dk;
            if (fours)
                for (int i = 4 * lane; i < d.dk; i += 128) {
                    copy_four(k + row * pitch + i, d.k + key + i);
                    copy_four(q + row * pitch + i, d.q + key + i);
                }
            else
                for (int i = lane; i < d.dk; i += 32) {
                    copy_float(k + row * pitch + i, d.k + key + i);
                    copy_float(q + row * pitch + i, d.q + key + i);
                }
            if (column + lane < d.dv)
                copy_float(v + row * COLUMNS + lane, d.v + ((first + row) * d.heads + head) * d.dv + column + lane);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
};

// The sum over the lanes that share a column.
static __device__ __forceinline__ float column_sum(float x) {
#pragma unroll
    for (int step = SHARES / 2; step; step >>= 1) x += __shfl_xor_sync(BS_FULL, x, step);
    return x;
}

// A thread's values of a column: fours `share`, `share` + SHARES and so on.
template <int FOURS>
struct Column {
    float s[4 * FOURS];

    static __device__ __forceinline__ int at(int i, int share) { return 4 * (i / 4 * SHARES + share) + i % 4; }

    __device__ __forceinline__ void read(const float *state, int dk, int dv, int share) {
#pragma unroll
        for (int i = 0; i < 4 * FOURS; i++) s[i] = at(i, share) < dk ? state[(i64)at(i, share) * dv] : 0.0f;
    }
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < 4 * FOURS; i++) s[i] = 0.0f;
    }
    __device__ __forceinline__ void write(float *state, int dk, int dv, int share) const {
#pragma unroll
        for (int i = 0; i < 4 * FOURS; i++)
            if (at(i, share) < dk) state[(i64)at(i, share) * dv] = s[i];
    }

    // One row: the state shrinks, takes in what the key does not find, and is asked by the query. Four sums
    // at a time, which hang on no other.
    __device__ __forceinline__ float step(const float *k, const float *q, int pitch, float v, Gates gates, int share) {
        float4 key[FOURS];
        float found[4] = {}, asked[4] = {};
#pragma unroll
        for (int f = 0; f < FOURS; f++) key[f] = four_of(k, f, share, pitch);
#pragma unroll
        for (int f = 0; f < FOURS; f++) {
            const float *of = &key[f].x;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                s[4 * f + i] *= gates.shrink;
                found[i] = fmaf(of[i], s[4 * f + i], found[i]);
            }
        }
        float taken = gates.beta * (v - column_sum((found[0] + found[1]) + (found[2] + found[3])));
#pragma unroll
        for (int f = 0; f < FOURS; f++) {
            float4 query = four_of(q, f, share, pitch);
            const float *of = &key[f].x, *by = &query.x;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                s[4 * f + i] = fmaf(of[i], taken, s[4 * f + i]);
                asked[i] = fmaf(by[i], s[4 * f + i], asked[i]);
            }
        }
        return column_sum((asked[0] + asked[1]) + (asked[2] + asked[3]));
    }

    // What the thread has of a row of keys or queries.
    static __device__ __forceinline__ float4 four_of(const float *row, int f, int share, int pitch) {
        if (32 * f >= pitch) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        return ((const float4 *)row)[f * SHARES + share];
    }
};

// While a block goes through some rows the next are on their way.
template <int FOURS>
static __device__ __forceinline__ void delta_block(const Delta &d) {
    extern __shared__ __align__(16) float memory[];
    int head = blockIdx.x, start = COLUMNS * blockIdx.z, share = threadIdx.x % SHARES, own = threadIdx.x / SHARES;
    int column = start + own, rows = d.rows / d.seqs, thread = threadIdx.x;
    i64 first = (i64)blockIdx.y * rows, line = (i64)d.line[blockIdx.y] * d.heads + head;
    bool fours = d.dk % 4 == 0 && (((u64)d.k | (u64)d.q) & 15) == 0, whole = column < d.dv;
    float *state = d.state + line * d.dk * d.dv + column;
    Stage next(memory, 0, d.dk);
    next.fetch(d, first, min(STAGE, rows), head, start, fours);
    Column<FOURS> held;
    if (whole && d.position[first] != 0) held.read(state, d.dk, d.dv, share);
    else held.clear();
    next.clear_ends(d.dk);
    Stage(memory, 1, d.dk).clear_ends(d.dk);
    if (thread < min(STAGE, rows)) next.gates[thread] = gates_of(d, read_gates(d, first + thread, head), head);
    for (int from = 0, turn = 0; from < rows; from += STAGE, turn ^= 1) {
        Stage stage(memory, turn, d.dk);
        next = Stage(memory, turn ^ 1, d.dk);
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        i64 after = first + from + STAGE;
        int count = min(STAGE, rows - from), more = min(STAGE, rows - from - STAGE);
        float2 gates = thread < more ? read_gates(d, after + thread, head) : float2{};
        if (more > 0) next.fetch(d, after, more, head, start, fours);
#pragma unroll 1
        for (int r = 0; r < count; r++) {
            __syncwarp();  // those that fetch gates would else go through the rows apart from the others
            float made = held.step(stage.k + r * stage.pitch, stage.q + r * stage.pitch, stage.pitch,
                                   stage.v[r * COLUMNS + own], stage.gates[r], share);
            if (whole && share == 0) d.y[((first + from + r) * d.heads + head) * d.dv + column] = d.scale * made;
        }
        if (thread < more) next.gates[thread] = gates_of(d, gates, head);
    }
    if (whole) held.write(state, d.dk, d.dv, share);
}

static __device__ __forceinline__ void delta_entry(const Delta &d) {
    before_next();
    after_previous();
    if (d.dk <= 32) delta_block<1>(d);
    else if (d.dk <= 128) delta_block<4>(d);
    else if (d.dk <= 256) delta_block<8>(d);
    else __trap();  // wider heads than any there is: better no result than a wrong one
}

#define X const float *q, const float *k, const float *v
#define REST float *state, const int *line, const int *position, float *y
#define SIZES int rows, int seqs, int key_heads, int heads, int dk, int dv, float scale
#define GIVEN line, position, state, y, rows, seqs, key_heads, heads, dk, dv, scale

BS_KERNEL(THREADS) delta(X, const float *g, const float *beta, REST, SIZES) {
    delta_entry({q, k, v, g, beta, nullptr, nullptr, nullptr, nullptr, {}, {}, GIVEN});
}

BS_KERNEL(THREADS)
delta_gates(X, const float *a, const float *b, const float *a_log, const float *dt, REST, SIZES, WINDOW(a),
            WINDOW(b)) {
    delta_entry({q, k, v, nullptr, nullptr, a, b, a_log, dt, WINDOW_OF(a), WINDOW_OF(b), GIVEN});
}
