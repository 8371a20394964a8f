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
#define STAGE 16  // rows laid into shared memory at a time
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

static __device__ __forceinline__ Gates gates_of(const Delta &d, i64 row, int head) {
    i64 at = row * d.heads + head;
    if (d.g) return Gates{expf(d.g[at]), d.beta[at]};
    float g = decayed(d.a[d.from_a.at(row, head)], d.a_log[head], d.dt[head]);
    return Gates{expf(g), sigmoid(d.b[d.from_b.at(row, head)])};
}

// Some rows in shared memory: keys and queries, of dk values and zeros up to `pitch`; values; gates.
struct Stage {
    float *k, *q, *v;
    Gates *gates;
    int pitch;

    __device__ Stage(void *memory, int dk) : pitch((dk + 31) / 32 * 32) {
        k = (float *)memory;
        q = k + STAGE * pitch;
        v = q + STAGE * pitch;
        gates = (Gates *)(v + STAGE * COLUMNS);
    }

    __device__ void lay(const Delta &d, i64 first, int rows, int head, int column) const {
        int key_head = head / (d.heads / d.key_heads);
        for (int at = threadIdx.x; at < rows * pitch; at += THREADS) {
            int row = at / pitch, i = at % pitch;
            i64 key = ((first + row) * d.key_heads + key_head) * d.dk + i;
            k[at] = i < d.dk ? d.k[key] : 0.0f;
            q[at] = i < d.dk ? d.q[key] : 0.0f;
        }
        for (int at = threadIdx.x; at < rows * COLUMNS; at += THREADS) {
            int i = column + at % COLUMNS;
            if (i < d.dv) v[at] = d.v[((first + at / COLUMNS) * d.heads + head) * d.dv + i];
        }
        if (threadIdx.x < rows) gates[threadIdx.x] = gates_of(d, first + threadIdx.x, head);
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

    // One row: the state shrinks, takes in what the key does not find, and is asked by the query.
    __device__ __forceinline__ float step(const float *k, const float *q, float v, Gates gates, int share) {
        float key[4 * FOURS], found = 0.0f, asked = 0.0f;
#pragma unroll
        for (int f = 0; f < FOURS; f++) {
            float4 four = ((const float4 *)k)[f * SHARES + share];
            key[4 * f] = four.x, key[4 * f + 1] = four.y, key[4 * f + 2] = four.z, key[4 * f + 3] = four.w;
        }
#pragma unroll
        for (int i = 0; i < 4 * FOURS; i++) {
            s[i] *= gates.shrink;
            found = fmaf(key[i], s[i], found);
        }
        float taken = gates.beta * (v - column_sum(found));
#pragma unroll
        for (int f = 0; f < FOURS; f++) {
            float4 four = ((const float4 *)q)[f * SHARES + share];
            float query[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                s[4 * f + i] = fmaf(key[4 * f + i], taken, s[4 * f + i]);
                asked = fmaf(query[i], s[4 * f + i], asked);
            }
        }
        return column_sum(asked);
    }
};

template <int FOURS>
static __device__ __forceinline__ void delta_block(const Delta &d) {
    extern __shared__ __align__(16) u8 memory[];
    Stage stage(memory, d.dk);
    int head = blockIdx.x, start = COLUMNS * blockIdx.z, share = threadIdx.x % SHARES;
    int own = threadIdx.x / SHARES, column = start + own, rows = d.rows / d.seqs;
    i64 first = (i64)blockIdx.y * rows, line = (i64)d.line[blockIdx.y] * d.heads + head;
    float *state = d.state + line * d.dk * d.dv + column;
    bool whole = column < d.dv;
    Column<FOURS> held;
    if (whole && d.position[first] != 0) held.read(state, d.dk, d.dv, share);
    else held.clear();
    for (int from = 0; from < rows; from += STAGE) {
        int count = min(STAGE, rows - from);
        __syncthreads();
        stage.lay(d, first + from, count, head, start);
        __syncthreads();
        for (int r = 0; r < count; r++) {
            float v = stage.v[r * COLUMNS + own];
            float made = held.step(stage.k + r * stage.pitch, stage.q + r * stage.pitch, v, stage.gates[r], share);
            if (whole && share == 0) d.y[((first + from + r) * d.heads + head) * d.dv + column] = d.scale * made;
        }
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
