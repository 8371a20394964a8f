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

/* Whether the rows of a matrix are stored in panels of sixteen: see code_stored.h. */
#ifndef BS_PANELS
#define BS_PANELS 0
#endif
#define BS_STORED_ROWS 16

#if BS_PANELS
#define BS_STORED panels_
#else
#define BS_STORED
#endif

#define BS_JOIN4(a, b, c, d) a##b##c##d
#define BS_JOIN(a, b, c, d) BS_JOIN4(a, b, c, d)
#define BS_ENTRY(family, forms) BS_JOIN(BS_STORED, family, BS_SUFFIX, forms)

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

/* What scales the values behind one header: of each 32 a scale and an offset, or of each 16 a scale. */
typedef struct {
    float scale[8 * (1 + BS_TWO_SCALES)], offset[8];
} bs_header;

static BS_INLINE void bs_header_load(const uint8_t *p, bs_header *h)
{
#if BS_FORMAT == BS_Q6_K
    float before, d;
    f32_from_f16_pair(p + 206, &before, &d);
    for (int i = 0; i < 16; i += 8) {
        v8f scales = d * v8_from_i32(v8_from_i8(p + 192 + i));
        memcpy(h->scale + i, &scales, sizeof scales);
    }
#elif BS_FORMAT == BS_Q4_K
    uint8_t six[16];
    float d, least;
    bs_six_bits(p + 4, six);
    f32_from_f16_pair(p, &d, &least);
    v8f scales = d * v8_from_i32(v8_from_u8(six)), offsets = -least * v8_from_i32(v8_from_u8(six + 8));
    memcpy(h->scale, &scales, sizeof scales);
    memcpy(h->offset, &offsets, sizeof offsets);
#else
    f32_from_f16_pair(p, h->scale, h->offset);
    if (!BS_HAS_OFFSET) h->offset[0] = h->scale[0] * -(float)BS_ZERO;
#endif
}

/* The 32 values j behind a header. Every product but q6_k's is exact in float32, so fusing it with
   the sum changes no bit of what the format defines. */
static BS_INLINE void bs_block_values(const uint8_t *p, const bs_header *h, int j, vf out[32 / VL])
{
#if BS_FORMAT == BS_Q4_0
    vf_nibbles(p + 2, vf_set(h->scale[j]), vf_set(h->offset[j]), out);
#elif BS_FORMAT == BS_Q4_1
    vf_nibbles(p + 4, vf_set(h->scale[j]), vf_set(h->offset[j]), out);
#elif BS_FORMAT == BS_Q4_K
    const uint8_t *codes = p + 16 + 32 * (j >> 1);
    vf_nibble_half(codes, j & 1, vf_set(h->scale[j]), vf_set(h->offset[j]), out);
#elif BS_FORMAT == BS_Q6_K
    vb codes = bs_codes(p, j) - (uint8_t)BS_ZERO;
    vf first = vf_set(h->scale[2 * j]), second = vf_set(h->scale[2 * j + 1]);
    for (int i = 0; i < 32 / VL; i++) out[i] = (VL * i < 16 ? first : second) * vf_from_i8(codes, i);
#else
    vb codes = vb_load(p + 2);
    for (int i = 0; i < 32 / VL; i++) out[i] = vf_set(h->scale[j]) * vf_from_i8(codes, i);
#endif
}

/* A row of `k` values as float32. */
BS_STATIC void bs_unpack_row(const uint8_t *row, int k, float *out)
{
    for (int b = 0; b < k / 32; b += BS_BLOCKS, row += BS_BLOCK_BYTES) {
        bs_header header;
        bs_header_load(row, &header);
        for (int j = 0; j < BS_BLOCKS; j++) {
            vf values[32 / VL];
            bs_block_values(row, &header, j, values);
            memcpy(out + 32 * (b + j), values, sizeof values);
        }
    }
}

#endif
#endif
