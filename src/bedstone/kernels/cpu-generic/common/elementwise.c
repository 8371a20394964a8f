/* add, mul, silu, gelu_tanh, sigmoid, softplus, scale, softcap, copies, casts: a block is 4096 values. */
#include <vector.h>

#define CHUNK 4096

typedef struct {
    const uint8_t *a, *b;
    float *y;
    int count;
    float by;
} operands;

static BS_INLINE operands read_operands(const bs_arg *args, int inputs, int scalars)
{
    bs_cursor at = args;
    operands o = {0};
    o.a = bs_ptr(&at);
    if (inputs == 2) o.b = bs_ptr(&at);
    o.y = bs_ptr(&at);
    o.count = bs_i32(&at);
    if (scalars) o.by = bs_f32(&at);
    return o;
}

/* Lanes [i, i + n) of values of `size` bytes, those past n zero. */
static BS_INLINE const uint8_t *lanes(const uint8_t *p, int i, int n, int size, uint8_t *padded)
{
    p += (size_t)i * (size_t)size;
    if (n == VL) return p;
    memset(padded, 0, (size_t)(VL * size));
    memcpy(padded, p, (size_t)(n * size));
    return padded;
}

#define FLOATS(p) vf_load_n((const float *)(p) + i, n)

#define ELEMENTWISE(entry, types, inputs, scalars, value)                        \
    BS_KERNEL(entry, types)                                                      \
    {                                                                            \
        BS_UNUSED(grid);                                                         \
        BS_UNUSED(shared);                                                       \
        operands o = read_operands(args, inputs, scalars);                       \
        int from = CHUNK * (int)block->x, to = bs_min(from + CHUNK, o.count);    \
        for (int i = from; i < to; i += VL) {                                    \
            int n = bs_min(VL, to - i);                                          \
            uint8_t padded[4 * VL];                                              \
            BS_UNUSED(padded);                                                   \
            vf_store_n(o.y + i, value, n);                                       \
        }                                                                        \
    }

#define TWO "in buffer<f32>, in buffer<f32>, out buffer<f32>, i32"
#define ONE "in buffer<f32>, out buffer<f32>, i32"

ELEMENTWISE(add, TWO, 2, 0, FLOATS(o.a) + FLOATS(o.b))
ELEMENTWISE(mul, TWO, 2, 0, FLOATS(o.a) * FLOATS(o.b))
ELEMENTWISE(silu, ONE, 1, 0, vf_silu(FLOATS(o.a)))
ELEMENTWISE(gelu_tanh, ONE, 1, 0, vf_gelu_tanh(FLOATS(o.a)))
ELEMENTWISE(sigmoid, ONE, 1, 0, vf_sigmoid(FLOATS(o.a)))
ELEMENTWISE(softplus, ONE, 1, 0, vf_softplus(FLOATS(o.a)))
ELEMENTWISE(copy_rows, ONE, 1, 0, FLOATS(o.a))
ELEMENTWISE(scale, ONE ", f32", 1, 1, FLOATS(o.a) * o.by)
ELEMENTWISE(softcap, ONE ", f32", 1, 1, o.by * vf_tanh(FLOATS(o.a) / o.by))
ELEMENTWISE(cast_f16_f32, "in buffer<f16>, out buffer<f32>, i32", 1, 0,
            vf_from_f16(lanes(o.a, i, n, 2, padded)))
ELEMENTWISE(cast_bf16_f32, "in buffer<bf16>, out buffer<f32>, i32", 1, 0,
            vf_from_bf16(lanes(o.a, i, n, 2, padded)))
