/* Kernels whose answers show how a scalar or a pointer arrived. */

#include "kernel.h"

BS_KERNEL(scale, "in buffer<f32>, out buffer<f32>, f32, i32") {
  UNUSED;
  const float *x = args[0].ptr;
  float *y = args[1].ptr;
  for (int i = 0; i < args[3].i32; i++) y[i] = x[i] * args[2].f32;
}

BS_KERNEL(echo, "out buffer<f32>, i32, i32, f32") {
  UNUSED;
  float *y = args[0].ptr;
  y[0] = args[1].i32, y[1] = args[2].i32, y[2] = args[3].f32;
}

BS_KERNEL(add, "in buffer<f32>, out buffer<f32>, i32") {
  UNUSED;
  const float *x = args[0].ptr;
  float sum = 0;
  for (int i = 0; i < args[2].i32; i++) sum += x[i];
  *(float *)args[1].ptr = sum;
}
