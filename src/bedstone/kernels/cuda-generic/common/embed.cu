// embed, embed_scaled: the row of a token, as float32; a block is a row.
#include "weights.cuh"

#define THREADS 256

static __device__ __forceinline__ void embed_row(const int *token, const u8 *w, float *y, int width, float by) {
    before_next();
    after_previous();
    const u8 *row = w + (i64)token[blockIdx.x] * format::bytes(width);
    y += (i64)blockIdx.x * width;
    for (int i = threadIdx.x; i < width; i += THREADS) y[i] = __fmul_rn(format::value(row, i), by);
}

BS_KERNEL(THREADS) BS_ENTRY(embed_, )(const int *token, const u8 *w, float *y, int rows, int width) {
    embed_row(token, w, y, width, 1.0f);
}

BS_KERNEL(THREADS)
BS_ENTRY(embed_scaled_, )(const int *token, const u8 *w, float *y, int rows, int width, float by) {
    embed_row(token, w, y, width, by);
}
