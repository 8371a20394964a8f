// The model of `calls.h` on a GPU, a thread a block. The header goes before.

#define IN const int32_t *

// no error so far
extern "C" __global__ void clear(int32_t *error) { *error = 0; }

extern "C" __global__ void forward(IN token, IN anchor, IN position, IN slot, IN valid, IN length,
                                   IN bounds, IN pages, IN line, int64_t *table, int64_t *sums,
                                   int32_t *tokens, int32_t *counts, int32_t *error,
                                   int32_t *on_token, int32_t *on_at, int32_t vocab, int32_t page,
                                   int32_t width, int32_t lines, int32_t rows, int32_t emits) {
  call c = {token,  anchor, position, slot,     valid, length, bounds, pages, line, table, sums,
            tokens, counts, error,    on_token, on_at, vocab,  page,   width, lines, rows, emits};
  forward_block(&c, blockIdx.x);
}

extern "C" __global__ void onward(IN pages, IN line, int64_t *table, int64_t *sums, IN token, IN at,
                                  int32_t *tokens, int32_t *counts, int32_t *error,
                                  int32_t *on_token, int32_t *on_at, int32_t vocab, int32_t page,
                                  int32_t width, int32_t lines, int32_t rows, int32_t emits) {
  call c = {token,  0,      at,    0,        0,     0,     0,    pages, line,  table, sums,
            tokens, counts, error, on_token, on_at, vocab, page, width, lines, rows,  emits};
  onward_block(&c, blockIdx.x);
}

extern "C" __global__ void split(IN blocks, IN bounds, int32_t *error, int32_t groups) {
  split_block(blocks, bounds, error, groups);
}

extern "C" __global__ void measure(IN length, int32_t *error, int32_t groups, int32_t said,
                                   int32_t more) {
  measure_block(length, error, groups, said, more);
}

extern "C" __global__ void draw(const float *temperature, int32_t *token, int32_t vocab) {
  draw_block(temperature[blockIdx.x], token + blockIdx.x, vocab);
}
