/* y[i] = a * x[i] + y[i] over a grid of blocks of one element. */

#include <stdint.h>

typedef union {
  void *ptr;
  int32_t i32;
  float f32;
  uint64_t word;
} bs_arg;

typedef struct {
  uint32_t x, y, z;
} bs_dim3;

const char bs_abi_axpy[] = "f32, in buffer<f32>, inout buffer<f32>";
void axpy(const bs_arg *args, const bs_dim3 *b, const bs_dim3 *grid, void *shared) {
  const float *x = args[1].ptr;
  float *y = args[2].ptr;
  (void)grid;
  (void)shared;
  y[b->x] += args[0].f32 * x[b->x];
}
