// hlinear, hlinear_t of float activations: each head of a row by its own matrix. A warp makes a few of a
// head's outputs; of the transposed, a thread a share of four, for some rows at once.
#define WARPS 4
#include "dot.cuh"
#include "part.cuh"

#define OUTPUTS 4  // of a warp

struct Heads {
    int rows, heads, k, n;
};

// Grid: heads, outputs, rows.
static __device__ __forceinline__ void hlinear(const float *x, const u8 *w, Forms out, Heads of, Window window) {
    int head = blockIdx.x, from = (blockIdx.y * WARPS + threadIdx.x / 32) * OUTPUTS, lane = threadIdx.x % 32;
    i64 row = blockIdx.z, bytes = format::bytes(of.k);
    Rows<OUTPUTS> rows;
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++) rows.at[i] = w + ((i64)head * of.n + min(from + i, of.n - 1)) * bytes;
    if (from < of.n) prefetch_rows<OUTPUTS>(rows, bytes);
    before_next();
    after_previous();
    if (from >= of.n) return;
    Products<OUTPUTS> made = dot_rows<format, OUTPUTS>(rows, x + window.at(row, head * of.k), of.k);
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++)
        if (lane == i && from + i < of.n)
            out.give<1>((row * of.heads + head) * of.n + from + i, Pack<1>{{made.at[i]}});
}

#define HLINEAR(ending, outs, ...)                                                                         \
    BS_KERNEL(32 * WARPS)                                                                                  \
    BS_ENTRY(hlinear_, ending)(const float *x, const u8 *w, outs, int rows, int heads, int k, int n, WINDOW(x)) { \
        hlinear(x, w, Forms{__VA_ARGS__}, {rows, heads, k, n}, WINDOW_OF(x));                              \
    }

#define ARGS(...) __VA_ARGS__
HLINEAR(, float *y, y, nullptr)
HLINEAR(_q, code_t *yq, nullptr, yq)
HLINEAR(_fq, ARGS(float *y, code_t *yq), y, yq)

// --- transposed --------------------------------------------------------------------------------

#define COLUMN_THREADS 32  // of a block, four columns each
#define SEGMENTS 4         // of k
#define MANY_ROWS 8        // whose sums a thread holds

// Four values of a row from `i` on; past its end zeros.
template <class F>
static __device__ __forceinline__ Pack<4> four_values(const u8 *row, int i, int n) {
    Pack<4> v;
    if constexpr (F::BLOCK == 1) {
        typedef typename F::element T;
        if constexpr (sizeof(T) == 4) {
            if (n % 4 == 0) return load<4>((const float *)row + i);
        } else if (n % 4 == 0) {
            uint2 pair = *(const uint2 *)((const T *)row + i);
            const T *each = (const T *)&pair;
            return Pack<4>{{to_f32(each[0]), to_f32(each[1]), to_f32(each[2]), to_f32(each[3])}};
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++) v.at[j] = i + j < n ? F::value(row, i + j) : 0.0f;
    return v;
}

// Sums of outputs [from, from + 4) of ROWS rows, from row `first` on, over values [begin, end) of k; past
// the last row it again.
template <int ROWS>
static __device__ __forceinline__ void add_columns(const float *x, const u8 *w, const Heads &of, const Window &window,
                                                   int first, int from, int begin, int end, Pack<4> (&sums)[ROWS]) {
    i64 bytes = format::bytes(of.n);
    const float *own[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) own[r] = x + window.at(min(first + r, of.rows - 1), blockIdx.x * of.k);
    w += (i64)blockIdx.x * of.k * bytes;
#pragma unroll 8
    for (int i = begin; i < end; i++) {
        Pack<4> v = four_values<format>(w + i * bytes, from, of.n);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float by = own[r][i];
#pragma unroll
            for (int j = 0; j < 4; j++) sums[r].at[j] = fmaf(by, v.at[j], sums[r].at[j]);
        }
    }
}

// The threads of a block share columns, and of each a SEGMENTS-th of k; those sums go in order.
template <int ROWS>
static __device__ __forceinline__ void transposed(const float *x, const u8 *w, float *y, const Heads &of,
                                                  const Window &window, int first) {
    __shared__ Pack<4> parts[SEGMENTS][COLUMN_THREADS];
    int column = threadIdx.x % COLUMN_THREADS, segment = threadIdx.x / COLUMN_THREADS;
    int from = 4 * (blockIdx.y * COLUMN_THREADS + column), each = (of.k + SEGMENTS - 1) / SEGMENTS;
    Pack<4> sums[ROWS] = {};
    if (from < of.n)
        add_columns<ROWS>(x, w, of, window, first, from, segment * each, min((segment + 1) * each, of.k), sums);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        parts[segment][column] = sums[r];
        __syncthreads();
        Pack<4> sum = parts[0][column];
        for (int s = 1; s < SEGMENTS; s++)
            for (int j = 0; j < 4; j++) sum.at[j] += parts[s][column].at[j];
        int i = from + segment;  // a segment's threads give one of a column's four
        if (segment < 4 && i < of.n && first + r < of.rows)
            y[((i64)(first + r) * of.heads + blockIdx.x) * of.n + i] = sum.at[segment];
        __syncthreads();
    }
}

// Grid: heads, outputs, rows.
BS_KERNEL(SEGMENTS *COLUMN_THREADS)
BS_ENTRY(hlinear_t_, )(const float *x, const u8 *w, float *y, int rows, int heads, int k, int n, WINDOW(x)) {
    Heads of = {rows, heads, k, n};
    int first = blockIdx.z * MANY_ROWS;
    before_next();
    after_previous();
    if (rows == 1) transposed<1>(x, w, y, of, WINDOW_OF(x), first);
    else transposed<MANY_ROWS>(x, w, y, of, WINDOW_OF(x), first);
}
