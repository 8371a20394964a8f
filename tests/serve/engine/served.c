/* An integer model of several sequences: the token that follows is the sum of all before it. */

#include "kernel.h"

/* the row's token goes to its place; no error so far */
BS_KERNEL(store, "in buffer<i32>, in buffer<i32>, inout state, out buffer<i32>") {
  UNUSED;
  const int32_t *token = args[0].ptr, *slot = args[1].ptr;
  int64_t *table = args[2].ptr;
  table[slot[block->x]] = token[block->x];
  if (block->x == 0) *(int32_t *)args[3].ptr = 0;
}

/* a sequence's line adds up its tokens, one after another */
BS_KERNEL(fold, "in buffer<i32>, in buffer<i32>, inout state, i32") {
  UNUSED;
  const int32_t *token = args[0].ptr, *line = args[1].ptr;
  int64_t *sums = args[2].ptr;
  int32_t rows = args[3].i32;
  for (int32_t r = 0; r < rows; r++) sums[line[block->x]] += token[(int32_t)block->x * rows + r];
}

static int64_t sum_of(const int64_t *table, const int32_t *pages, int32_t last, int32_t page,
                      int32_t vocab, int *broken) {
  int64_t sum = 0;
  for (int32_t p = 0; p <= last; p++) {
    int64_t token = table[pages[p / page] * page + p % page];
    *broken |= token == vocab - 1;
    sum += token;
  }
  return sum;
}

/* the token that follows each sequence; the vocabulary's last stands for a broken logit */
BS_KERNEL(close_step,
          "in state, in state, in buffer<i32>, in buffer<i32>, in buffer<i32>, out buffer<i32>, "
          "out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, i32, i32, i32, "
          "i32") {
  UNUSED;
  const int64_t *table = args[0].ptr, *sums = args[1].ptr;
  const int32_t *line = args[2].ptr, *position = args[3].ptr;
  int32_t rows = args[10].i32, vocab = args[11].i32, page = args[12].i32, width = args[13].i32;
  int32_t g = (int32_t)block->x, last = position[(g + 1) * rows - 1];
  const int32_t *pages = (const int32_t *)args[4].ptr + g * width;
  int32_t *next = args[5].ptr, *error = args[6].ptr;
  int32_t *token = args[7].ptr, *at = args[8].ptr, *slot = args[9].ptr;
  int broken = 0;
  int64_t sum = sum_of(table, pages, last, page, vocab, &broken);
  if (sums != table) sum += sums[line[g]];
  next[g] = token[g] = (int32_t)(sum % (vocab - 1));
  at[g] = last + 1;
  slot[g] = last + 1 < width * page ? pages[(last + 1) / page] * page + (last + 1) % page : 0;
  if (broken) *error = 1;
}
