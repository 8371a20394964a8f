// gather: columns of a sequence's rows, laid one after another; a block is 16 positions.
#include "part.cuh"

#define THREADS 256
#define POSITIONS 16

static __device__ __forceinline__ void gather_rows(const cache_t *table, const int *pages, Forms out, int rows,
                                                   int width, int page, int pitch, int column) {
    before_next();
    after_previous();
    int first = POSITIONS * blockIdx.x, last = min(first + POSITIONS, rows);
    in_packs(by_four(width, pitch, column), [&](auto n) {
        constexpr int N = decltype(n)::count;
        for (int t = first; t < last; t++) {
            const cache_t *row = table + ((i64)pages[t / page] * page + t % page) * pitch + column;
            along<N, THREADS>(width, [&](int i) { out.give((i64)t * width + i, load<N>(row + i)); });
        }
    });
}

#define GATHER(suffix, outs, ...)                                                                       \
    BS_KERNEL(THREADS)                                                                                  \
    gather##suffix(const cache_t *table, const int *pages, outs, int rows, int width, int page,         \
                   int pitch, int column) {                                                             \
        gather_rows(table, pages, Forms{__VA_ARGS__}, rows, width, page, pitch, column);                \
    }

#define F float *y
#define Q code_t *yq
#define FQ float *y, code_t *yq
GATHER(, F, y, nullptr)
GATHER(_q, Q, nullptr, yq)
GATHER(_fq, FQ, y, yq)
