/* y[i] = a * x[i] + y[i] over a grid of blocks of one element. */

#include "kernel.h"

BS_KERNEL(axpy, "f32, in buffer<f32>, inout buffer<f32>") {
  const float *x = args[1].ptr;
  float *y = args[2].ptr;
  (void)grid, (void)shared;
  y[block->x] += args[0].f32 * x[block->x];
}
