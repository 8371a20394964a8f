/* A launch, and how its entry is called: docs/kernels.md. */
#ifndef BS_LAUNCH_H
#define BS_LAUNCH_H

#include <stdint.h>

typedef union {
  void *ptr;
  int32_t i32;
  int64_t i64;
  float f32;
  uint8_t u8;
  uint64_t word;
} bs_arg;

typedef struct {
  uint32_t x, y, z;
} bs_dim3;

typedef void bs_kernel(const bs_arg *args, const bs_dim3 *block_index, const bs_dim3 *grid,
                       void *shared);

/* One launch: seven words, laid out by bedstone.runtime.image. */
typedef struct {
  bs_kernel *entry;
  const bs_arg *args;
  uint64_t x, y, z;
  uint64_t shared;
  uint64_t active;
} bs_launch;

static uint64_t blocks(const bs_launch *l) { return l->active ? l->x * l->y * l->z : 0; }

#endif
