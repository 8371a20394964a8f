/* How a row of weights is stored, one format a compile: BS_FORMAT names it.
 *
 * A dense row is values. A quantized row is blocks; its 32 values from 32 b onward are
 *     value = scale(b) * (code - BS_ZERO) + offset(b)
 * with one scale for all 32, save q6_k's, which has one for each 16.
 */
#ifndef BS_FORMAT_H
#define BS_FORMAT_H

#include <vector.h>

#define BS_F32 0
#define BS_F16 1
#define BS_BF16 2
#define BS_Q8_0 3
#define BS_Q4_0 4
#define BS_Q4_1 5
#define BS_Q4_K 6
#define BS_Q6_K 7

#define BS_DENSE (BS_FORMAT <= BS_BF16)
#define BS_BLOCKS 1       /* blocks of 32 that share a header */
#define BS_HAS_OFFSET 0
#define BS_TWO_SCALES 0
#define BS_SIGNED 0
#define BS_W "u8"

#if BS_FORMAT == BS_F32
#define BS_SUFFIX f32
#define BS_VALUE_BYTES 4
#undef BS_W
#define BS_W "f32"
#define bs_value_load(p) vf_load((const float *)(p))

#elif BS_FORMAT == BS_F16
#define BS_SUFFIX f16
#define BS_VALUE_BYTES 2
#undef BS_W
#define BS_W "f16"
#define bs_value_load(p) vf_from_f16(p)

#elif BS_FORMAT == BS_BF16
#define BS_SUFFIX bf16
#define BS_VALUE_BYTES 2
#undef BS_W
#define BS_W "bf16"
#define bs_value_load(p) vf_from_bf16(p)

#elif BS_FORMAT == BS_Q8_0
#define BS_SUFFIX q8_0
#define BS_BLOCK_BYTES 34
#define BS_ZERO BS_I8_BIAS
#undef BS_SIGNED
#define BS_SIGNED 1

#elif BS_FORMAT == BS_Q4_0
#define BS_SUFFIX q4_0
#define BS_BLOCK_BYTES 18
#define BS_ZERO 8

#elif BS_FORMAT == BS_Q4_1
#define BS_SUFFIX q4_1
#define BS_BLOCK_BYTES 20
#define BS_ZERO 0
#undef BS_HAS_OFFSET
#define BS_HAS_OFFSET 1

#elif BS_FORMAT == BS_Q4_K
#define BS_SUFFIX q4_k
#define BS_BLOCK_BYTES 144
#define BS_ZERO 0
#undef BS_HAS_OFFSET
#define BS_HAS_OFFSET 1
#undef BS_BLOCKS
#define BS_BLOCKS 8

#elif BS_FORMAT == BS_Q6_K
#define BS_SUFFIX q6_k
#define BS_BLOCK_BYTES 210
#define BS_ZERO 32
#undef BS_TWO_SCALES
#define BS_TWO_SCALES 1
#undef BS_BLOCKS
#define BS_BLOCKS 8
#endif

#define BS_JOIN3(a, b, c) a##b##c
#define BS_JOIN(a, b, c) BS_JOIN3(a, b, c)
#define BS_ENTRY(family, forms) BS_JOIN(family, BS_SUFFIX, forms)

static BS_INLINE size_t bs_row_bytes(int k)
{
#if BS_DENSE
    return (size_t)k * BS_VALUE_BYTES;
#else
    return (size_t)(k / (32 * BS_BLOCKS)) * BS_BLOCK_BYTES;
#endif
}

#if BS_DENSE

/* Values [k, k + n) of a row, n <= VL. */
static BS_INLINE vf bs_values(const uint8_t *row, int k, int n)
{
    const uint8_t *at = row + (size_t)k * BS_VALUE_BYTES;
    if (n == VL) return bs_value_load(at);
    uint8_t padded[VL * BS_VALUE_BYTES] = {0};
    memcpy(padded, at, (size_t)n * BS_VALUE_BYTES);
    return bs_value_load(padded);
}

#else

static BS_INLINE float bs_half(const uint8_t *p)
{
    uint16_t half;
    memcpy(&half, p, 2);
    return f32_from_f16(half);
}

/* The header of q4_k: six-bit scales of its eight blocks, then their six-bit offsets. */
static BS_INLINE void bs_six_bits(const uint8_t *p, uint8_t out[16])
{
    uint32_t a, b, c;
    memcpy(&a, p, 4);
    memcpy(&b, p + 4, 4);
    memcpy(&c, p + 8, 4);
    uint32_t words[4] = {
        a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | ((a >> 2) & 0x30303030),
        b & 0x3f3f3f3f, ((c >> 4) & 0x0f0f0f0f) | ((b >> 2) & 0x30303030),
    };
    memcpy(out, words, 16);
}

/* The codes of 32 values; `p` is the header's block, `j` counts the 32s behind it. */
static BS_INLINE vb bs_codes(const uint8_t *p, int j)
{
#if BS_FORMAT == BS_Q8_0
    BS_UNUSED(j);
    return vb_load(p + 2) ^ (uint8_t)BS_I8_BIAS;
#elif BS_FORMAT == BS_Q4_0
    BS_UNUSED(j);
    return vb_nibbles(p + 2);
#elif BS_FORMAT == BS_Q4_1
    BS_UNUSED(j);
    return vb_nibbles(p + 4);
#elif BS_FORMAT == BS_Q4_K
    return vb_nibble_half(p + 16 + 32 * (j >> 1), j & 1);
#else
    /* each 128 values: low nibbles of 64 bytes, then their high ones; two more bits beside them */
    int half = j >> 2, quarter = j & 3;
    vb low = vb_nibble_half(p + 64 * half + 32 * (quarter & 1), quarter >> 1);
    return low | vb_bit_pairs(p + 128 + 32 * half, 2 * quarter);
#endif
}

/* The 32 values of a block. Every product below is exact in float32 but q6_k's, so fusing it with
   the sum changes no bit of what the format defines. */
static BS_INLINE void bs_block_values(const uint8_t *p, int j, vf out[32 / VL])
{
    vb codes = bs_codes(p, j);
#if BS_FORMAT == BS_Q6_K
    float d = bs_half(p + 208);
    const int8_t *scales = (const int8_t *)p + 192 + 2 * j;
    vf first = vf_set(d * (float)scales[0]), second = vf_set(d * (float)scales[1]);
    for (int i = 0; i < 32 / VL; i++)
        out[i] = (VL * i < 16 ? first : second) * (vf_from_u8(codes, i) - (float)BS_ZERO);
#elif BS_FORMAT == BS_Q4_K
    uint8_t six[16];
    bs_six_bits(p + 4, six);
    vf scale = vf_set(bs_half(p) * (float)six[j]), offset = vf_set(bs_half(p + 2) * (float)six[8 + j]);
    for (int i = 0; i < 32 / VL; i++) out[i] = scale * vf_from_u8(codes, i) - offset;
#elif BS_FORMAT == BS_Q4_1
    BS_UNUSED(j);
    vf scale = vf_set(bs_half(p)), offset = vf_set(bs_half(p + 2));
    for (int i = 0; i < 32 / VL; i++) out[i] = vf_fma(scale, vf_from_u8(codes, i), offset);
#elif BS_FORMAT == BS_Q4_0
    BS_UNUSED(j);
    vf scale = vf_set(bs_half(p));
    for (int i = 0; i < 32 / VL; i++) out[i] = scale * (vf_from_u8(codes, i) - (float)BS_ZERO);
#else
    BS_UNUSED(j);
    vf scale = vf_set(bs_half(p));
    codes ^= (uint8_t)BS_I8_BIAS;
    for (int i = 0; i < 32 / VL; i++) out[i] = scale * vf_from_i8(codes, i);
#endif
}

/* A row of `k` values as float32. */
BS_STATIC void bs_unpack_row(const uint8_t *row, int k, float *out)
{
    for (int b = 0; b < k / 32; b++) {
        vf values[32 / VL];
        bs_block_values(row + (size_t)(b / BS_BLOCKS) * BS_BLOCK_BYTES, b % BS_BLOCKS, values);
        memcpy(out + 32 * b, values, sizeof values);
    }
}

#endif
#endif
