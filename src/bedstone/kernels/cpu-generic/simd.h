/* Vectors of any machine: four float lanes, eight where rows of codes meet, no instruction assumed.
 *
 * Every set's simd.h defines the same names; sources include it in angle brackets, so that the
 * chosen set's file is the one found.
 */
#ifndef BS_SIMD_H
#define BS_SIMD_H

#include <stdint.h>
#include <string.h>

#include <abi.h>

#define VL 4              /* float lanes */
#define VO 8              /* outputs side by side in a panel of codes */
#define BS_TILE_ROWS 2    /* rows of the float panel product */
#define BS_CODE_ROWS 2    /* rows of the code panel product */
#define BS_QUERIES 2      /* queries of the score product */
#define BS_I8_BIAS 0      /* what is added to a signed code to store it: dot4_i8 takes it as it is */

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef uint8_t vb __attribute__((vector_size(32)));
typedef v8f vof;
typedef v8i voi;

static BS_INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
static BS_INLINE v8f v8_fma(v8f a, v8f b, v8f c) { return a * b + c; }
static BS_INLINE vof vo_fma(vof a, vof b, vof c) { return a * b + c; }

static BS_INLINE vb vb_load(const uint8_t *p)
{
    vb bytes;
    memcpy(&bytes, p, 32);
    return bytes;
}

static BS_INLINE float vf_sum(vf v) { return (v[0] + v[2]) + (v[1] + v[3]); }

static BS_INLINE float vf_max(vf v)
{
    float low = v[0] > v[2] ? v[0] : v[2], high = v[1] > v[3] ? v[1] : v[3];
    return low > high ? low : high;
}

static BS_INLINE float f32_from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff, bits;
    if (rest >= 0x7c00) {
        bits = (rest << 13) | 0x7f800000;
    } else if (rest >= 0x0400) {
        bits = (rest << 13) + (112u << 23);
    } else {
        /* subnormal: its value is rest * 2^-24, which a float holds exactly */
        float small = (float)rest * 0x1p-24f;
        memcpy(&bits, &small, 4);
    }
    bits |= sign;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static BS_INLINE vf vf_from_f16(const uint8_t *p)
{
    uint16_t h[4];
    memcpy(h, p, 8);
    return (vf){f32_from_f16(h[0]), f32_from_f16(h[1]), f32_from_f16(h[2]), f32_from_f16(h[3])};
}

static BS_INLINE vf vf_from_bf16(const uint8_t *p)
{
    uint16_t h[4];
    memcpy(h, p, 8);
    vi bits = {h[0], h[1], h[2], h[3]};
    return (vf)(bits << 16);
}

/* Lanes VL * part onward of 32 codes, unsigned or signed. */
static BS_INLINE vf vf_from_u8(vb codes, int part)
{
    int i = VL * part;
    return (vf){codes[i], codes[i + 1], codes[i + 2], codes[i + 3]};
}

static BS_INLINE vf vf_from_i8(vb codes, int part)
{
    int i = VL * part;
    return (vf){(int8_t)codes[i], (int8_t)codes[i + 1], (int8_t)codes[i + 2], (int8_t)codes[i + 3]};
}

/* 16 bytes of nibbles: the low ones, then the high ones. */
static BS_INLINE vb vb_nibbles(const uint8_t *p)
{
    vb codes;
    for (int i = 0; i < 16; i++) {
        codes[i] = p[i] & 15;
        codes[i + 16] = p[i] >> 4;
    }
    return codes;
}

/* The low or the high nibbles of 32 bytes. */
static BS_INLINE vb vb_nibble_half(const uint8_t *p, int high)
{
    return high ? vb_load(p) >> 4 : vb_load(p) & 15;
}

/* 32 bytes shifted right by an even count below 8, two bits kept, moved to bits 4 and 5. */
static BS_INLINE vb vb_bit_pairs(const uint8_t *p, int shift)
{
    return ((vb_load(p) >> (uint8_t)shift) & 3) << 4;
}

/* Lane i gains the sum of four products of codes; `w` unsigned (under 128) or signed, `x` signed. */
static BS_INLINE v8i dot4_u8(v8i acc, vb w, vb x)
{
    for (int i = 0; i < 32; i++) acc[i / 4] += (int32_t)w[i] * (int8_t)x[i];
    return acc;
}

static BS_INLINE v8i dot4_i8(v8i acc, vb w, vb x)
{
    for (int i = 0; i < 32; i++) acc[i / 4] += (int32_t)(int8_t)w[i] * (int8_t)x[i];
    return acc;
}

/* The same over VO outputs, each with its own four codes, against one group of four. */
static BS_INLINE voi vo_dot4_u8(voi acc, const uint8_t *w, int32_t x)
{
    for (int c = 0; c < 4; c++) {
        int32_t code = (int8_t)((uint32_t)x >> (8 * c));
        for (int i = 0; i < VO; i++) acc[i] += (int32_t)w[4 * i + c] * code;
    }
    return acc;
}

static BS_INLINE voi vo_dot4_i8(voi acc, const uint8_t *w, int32_t x)
{
    for (int c = 0; c < 4; c++) {
        int32_t code = (int8_t)((uint32_t)x >> (8 * c));
        for (int i = 0; i < VO; i++) acc[i] += (int32_t)(int8_t)w[4 * i + c] * code;
    }
    return acc;
}

/* Of eight vectors: lane i of `first` is the sum of vector i's lanes 0-3, of `second` of 4-7. */
static BS_INLINE void v8_halves(const v8i p[8], v8i *first, v8i *second)
{
    for (int i = 0; i < 8; i++) {
        (*first)[i] = p[i][0] + p[i][1] + p[i][2] + p[i][3];
        (*second)[i] = p[i][4] + p[i][5] + p[i][6] + p[i][7];
    }
}

/* The half floats that lie `offset` bytes into each of eight rows, and the ones right behind. */
static BS_INLINE v8f v8_from_f16(const uint8_t *const rows[8], size_t offset)
{
    v8f values;
    for (int i = 0; i < 8; i++) {
        uint16_t half;
        memcpy(&half, rows[i] + offset, 2);
        values[i] = f32_from_f16(half);
    }
    return values;
}

static BS_INLINE void v8_from_f16_pair(const uint8_t *const rows[8], size_t offset, v8f *a, v8f *b)
{
    *a = v8_from_f16(rows, offset);
    *b = v8_from_f16(rows, offset + 2);
}

/* Bytes [8][16] to [16][8]. */
static BS_INLINE void bytes_transpose(const uint8_t in[8][16], uint8_t out[16][8])
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 16; j++) out[j][i] = in[i][j];
}

static BS_INLINE v8i v8_from_u8(const uint8_t *p)
{
    return (v8i){p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]};
}

static BS_INLINE v8i v8_from_i8(const uint8_t *p)
{
    const int8_t *s = (const int8_t *)p;
    return (v8i){s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]};
}

/* Columns [at, at + VL) of VL rows of floats to VL rows of `out`, `stride` floats apart. */
static BS_INLINE void vf_transpose(const float *const rows[VL], int at, float *out, int stride)
{
    for (int j = 0; j < VL; j++)
        for (int i = 0; i < VL; i++) out[j * stride + i] = rows[i][at + j];
}

#endif
