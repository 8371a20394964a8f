// hlinear of coded activations: each head of a row by its own matrix, on the matrix units.
#include "part.cuh"
#include "tile.cuh"

#define WARPS 4
#define MANY 8  // eights of rows that go by together

struct Job {
    const code_t *x;
    const u8 *w;
    Forms out;
    int rows, heads, k, n;
    Window window;
};

// Outputs [from, from + 16) of a head, of rows from `first` on.
template <int NB>
static __device__ __forceinline__ void multiply_rows(const Job &job, int head, int from, int first) {
    Tile<1, NB> tile;
    int count = min(job.rows - first, 8 * NB);
    tile.k = job.k;
    tile.eights = (count + 7) / 8;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int output = min(from + tile_group() + 8 * h, job.n - 1);
        tile.w[0][h] = job.w + ((i64)head * job.n + output) * format::bytes(job.k);
    }
#pragma unroll
    for (int f = 0; f < NB; f++)
        tile.x[f] = job.x + job.window.at(first + min(8 * f + tile_group(), count - 1), head * job.k);
    multiply<format>(tile);
    each_sum(tile, [&](int output, int column, const float (&made)[1]) {
        i64 place = ((i64)(first + column) * job.heads + head) * job.n + from + output;
        if (column < count && from + output < job.n) job.out.give<1>(place, Pack<1>{{made[0]}});
    });
}

// Grid: heads, outputs, rows.
static __device__ __forceinline__ void hlinear(const Job &job) {
    int from = (blockIdx.y * WARPS + threadIdx.x / 32) * 16, first = blockIdx.z * 8 * MANY;
    before_next();
    after_previous();
    if (from >= job.n) return;
    if (job.rows - first <= 8) multiply_rows<1>(job, blockIdx.x, from, first);
    else multiply_rows<MANY>(job, blockIdx.x, from, first);
}

#define HLINEAR(ending, outs, ...)                                                                     \
    BS_KERNEL(32 * WARPS)                                                                              \
    BS_ENTRY(hlinear_q_, ending)(const code_t *xq, const u8 *w, outs, int rows, int heads, int k, int n, \
                                 WINDOW(x)) {                                                          \
        hlinear({xq, w, {__VA_ARGS__}, rows, heads, k, n, WINDOW_OF(x)});                              \
    }

#define ARGS(...) __VA_ARGS__
HLINEAR(, float *y, y, nullptr)
HLINEAR(_q, code_t *yq, nullptr, yq)
HLINEAR(_fq, ARGS(float *y, code_t *yq), y, yq)
