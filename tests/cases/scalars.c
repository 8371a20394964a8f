/* Kernels whose answers show how a scalar or a pointer arrived. */
#include <stdint.h>
typedef union { void *ptr; int32_t i32; int64_t i64; float f32; uint8_t u8; uint64_t word; } bs_arg;
typedef struct { uint32_t x, y, z; } bs_dim3;
#define KERNEL(entry, types)                                                              \
    const char bs_abi_##entry[] = types;                                                  \
    void entry(const bs_arg *a, const bs_dim3 *block, const bs_dim3 *grid, void *shared)

KERNEL(scale, "in buffer<f32>, out buffer<f32>, f32, i32")
{
    (void)block, (void)grid, (void)shared;
    for (int i = 0; i < a[3].i32; i++) ((float *)a[1].ptr)[i] = ((float *)a[0].ptr)[i] * a[2].f32;
}

KERNEL(echo, "out buffer<f32>, i32, i32, f32")
{
    (void)block, (void)grid, (void)shared;
    float *y = a[0].ptr;
    y[0] = a[1].i32, y[1] = a[2].i32, y[2] = a[3].f32;
}

KERNEL(add, "in buffer<f32>, out buffer<f32>, i32")
{
    (void)block, (void)grid, (void)shared;
    float sum = 0;
    for (int i = 0; i < a[2].i32; i++) sum += ((float *)a[0].ptr)[i];
    *(float *)a[1].ptr = sum;
}
