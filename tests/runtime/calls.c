/* The model of `calls.h` on a CPU. */

#include "kernel.h"

#define FN static
#include "calls.h"

/* no error so far */
BS_KERNEL(clear, "out buffer<i32>") {
  UNUSED;
  *(int32_t *)args[0].ptr = 0;
}

BS_KERNEL(forward,
          "in buffer<i32>, in buffer<i32>, in buffer<i32>, in buffer<i32>, in buffer<i32>, "
          "in buffer<i32>, in buffer<i32>, in buffer<i32>, in buffer<i32>, inout state, "
          "inout state, out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, "
          "out buffer<i32>, i32, i32, i32, i32, i32, i32") {
  UNUSED;
  call c = {args[0].ptr,  args[1].ptr,  args[2].ptr,  args[3].ptr,  args[4].ptr,  args[5].ptr,
            args[6].ptr,  args[7].ptr,  args[8].ptr,  args[9].ptr,  args[10].ptr, args[11].ptr,
            args[12].ptr, args[13].ptr, args[14].ptr, args[15].ptr, args[16].i32, args[17].i32,
            args[18].i32, args[19].i32, args[20].i32, args[21].i32};
  forward_block(&c, (int32_t)block->x);
}

BS_KERNEL(onward,
          "in buffer<i32>, in buffer<i32>, inout state, inout state, in buffer<i32>, "
          "in buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, "
          "out buffer<i32>, i32, i32, i32, i32, i32, i32") {
  UNUSED;
  call c = {args[4].ptr,  0,            args[5].ptr,  0,            0,            0,
            0,            args[0].ptr,  args[1].ptr,  args[2].ptr,  args[3].ptr,  args[6].ptr,
            args[7].ptr,  args[8].ptr,  args[9].ptr,  args[10].ptr, args[11].i32, args[12].i32,
            args[13].i32, args[14].i32, args[15].i32, args[16].i32};
  onward_block(&c, (int32_t)block->x);
}

BS_KERNEL(split, "in buffer<i32>, in buffer<i32>, inout buffer<i32>, i32") {
  UNUSED;
  split_block(args[0].ptr, args[1].ptr, args[2].ptr, args[3].i32);
}

BS_KERNEL(measure, "in buffer<i32>, inout buffer<i32>, i32, i32, i32") {
  UNUSED;
  measure_block(args[0].ptr, args[1].ptr, args[2].i32, args[3].i32, args[4].i32);
}

BS_KERNEL(draw, "in buffer<f32>, inout buffer<i32>, i32") {
  UNUSED;
  const float *temperature = args[0].ptr;
  draw_block(temperature[block->x], (int32_t *)args[1].ptr + block->x, args[2].i32);
}
