/* An integer model whose answers are known: the next token is the sum of all tokens so far. */

#include "kernel.h"

BS_KERNEL(store, "in buffer<i32>, in buffer<i32>, inout state") {
  UNUSED;
  const int32_t *token = args[0].ptr, *slot = args[1].ptr;
  int64_t *table = args[2].ptr;
  table[slot[block->x]] = token[block->x];
}

/* block b adds the positions p with p % grid = b, through shared memory of one word */
BS_KERNEL(part, "in state, in buffer<i32>, in buffer<i32>, out buffer<i64>, i32, i32") {
  const int64_t *table = args[0].ptr;
  const int32_t *position = args[1].ptr, *pages = args[2].ptr;
  int64_t *parts = args[3].ptr;
  int32_t rows = args[4].i32, page = args[5].i32;
  volatile int64_t *sum = shared;
  *sum = 0;
  for (int32_t p = (int32_t)block->x; p <= position[rows - 1]; p += (int32_t)grid->x)
    *sum += table[pages[p / page] * page + p % page];
  parts[block->x] = *sum;
}

/* the last token of the vocabulary stands for a broken logit */
BS_KERNEL(close_step,
          "in buffer<i64>, in buffer<i32>, in buffer<i32>, out buffer<i32>, out buffer<i32>, "
          "out buffer<i32>, out buffer<i32>, out buffer<i32>, i32, i32, i32, i32, i32") {
  UNUSED;
  const int64_t *parts = args[0].ptr;
  const int32_t *position = args[1].ptr, *pages = args[2].ptr;
  int32_t *next = args[3].ptr, *error = args[4].ptr;
  int32_t *token = args[5].ptr, *at = args[6].ptr, *slot = args[7].ptr;
  int32_t rows = args[8].i32, vocab = args[9].i32, page = args[10].i32, context = args[11].i32;
  int32_t count = args[12].i32;
  int64_t sum = 0;
  for (int32_t i = 0; i < count; i++) sum += parts[i];
  *next = *token = (int32_t)(sum % vocab);
  *at = position[rows - 1] + 1;
  *error = *next == vocab - 1;
  if (*at < context) *slot = pages[*at / page] * page + *at % page;
}
