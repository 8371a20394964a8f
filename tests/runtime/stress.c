/* Kernels whose results show a lost launch, a block run twice, or a barrier that did not hold. */

#include "ahead.h"
#include "kernel.h"

/* count[b] += 1 for each block; wrong unless each block runs once */
BS_KERNEL(tick, "inout buffer<i32>") {
  int32_t *count = args[0].ptr;
  (void)shared;
  count[(block->z * grid->y + block->y) * grid->x + block->x] += 1;
}

/* out[b] = in[0] + ... + in[n - 1] + b: reads what every other block of the launch before wrote */
BS_KERNEL(gather, "in buffer<i32>, out buffer<i32>, i32") {
  const int32_t *in = args[0].ptr;
  int32_t *out = args[1].ptr;
  uint32_t sum = block->x;
  (void)grid, (void)shared;
  for (int32_t i = 0; i < args[2].i32; i++) sum += (uint32_t)in[i];
  out[block->x] = (int32_t)sum;
}

/* shared memory is whole, aligned and the block's own while it runs */
BS_KERNEL(scratch, "out buffer<i32>, i32") {
  int32_t *out = args[0].ptr, bad = ((uintptr_t)shared % 64) != 0;
  volatile uint32_t *words = shared;
  (void)grid;
  for (int32_t i = 0; i < args[1].i32; i++) words[i] = block->x * 7919 + (uint32_t)i;
  for (int32_t i = 0; i < args[1].i32; i++) bad += words[i] != block->x * 7919 + (uint32_t)i;
  out[block->x] = bad;
}

/* 1 where a subnormal survives arithmetic */
BS_KERNEL(subnormal, "out buffer<i32>") {
  volatile float tiny = 1e-40f;
  (void)grid, (void)shared;
  ((int32_t *)args[0].ptr)[block->x] = tiny * 0.5f > 0.0f;
}

bs_coming *(*bs_along)(void);

/* tick's blocks [from, to) read the addresses of that name */
int32_t bs_reads_tick(const bs_arg *args, uint64_t from, uint64_t to, uint64_t blocks, bs_range *out,
                      int32_t most) {
  (void)args;
  out[0] = (bs_range){(const uint8_t *)from, (const uint8_t *)to};
  out[1] = (bs_range){(const uint8_t *)blocks, (const uint8_t *)blocks};
  return most < 2 ? 0 : 2;
}

/* out[b] = what comes: how many ranges, and the first and the last address of the first one */
BS_KERNEL(watch, "out buffer<i32>") {
  int32_t *out = (int32_t *)args[0].ptr + 3 * block->x;
  const bs_coming *coming = bs_along();
  (void)grid, (void)shared;
  out[0] = (int32_t)(coming->last - coming->next);
  out[1] = out[0] ? (int32_t)(uintptr_t)coming->next->at : 0;
  out[2] = out[0] ? (int32_t)(uintptr_t)coming->next->end : 0;
}
