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
typedef uint8_t vow __attribute__((vector_size(4 * VO))); /* a word of each output's codes */

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

/* Lanes go by fours. Four floats in each of them. */
static BS_INLINE vf vf_quad(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Of VL / 4 vectors the l-th four of each, to vector l. */
static BS_INLINE void vf_deal_quads(vf v[VL / 4]) { BS_UNUSED(v); }

/* The sums of the fours of four vectors: lane 4 l + j is of the l-th of vector j. */
static BS_INLINE vf vf_fold_quads(const vf v[4])
{
    vf folded;
    for (int j = 0; j < 4; j++) folded[j] = vf_sum(v[j]);
    return folded;
}

/* Half floats as integers to floats: a scaling by 2^112 re-biases the exponent, of subnormals too;
   what had the highest exponent (infinity, NaN) is given the highest again. */
static BS_INLINE vf vf_from_halves(vi half)
{
    vi bits = (half & 0x7fff) << 13;
    vi top = (half & 0x7c00) == 0x7c00;
    vf scaled = (vf)bits * 0x1p112f;
    vi value = (top & (bits | 0x7f800000)) | (~top & (vi)scaled);
    return (vf)(value | ((half & 0x8000) << 16));
}

static BS_INLINE vi vi_from_u16(const uint8_t *p)
{
    typedef uint16_t four __attribute__((vector_size(8)));
    four values;
    memcpy(&values, p, 8);
    return __builtin_convertvector(values, vi);
}

/* Two half floats side by side. */
static BS_INLINE void f32_from_f16_pair(const uint8_t *p, float *a, float *b)
{
    uint32_t both;
    memcpy(&both, p, 4);
    vf values = vf_from_halves((vi){(int32_t)(both & 0xffff), (int32_t)(both >> 16), 0, 0});
    *a = values[0];
    *b = values[1];
}

static BS_INLINE vf vf_from_f16(const uint8_t *p) { return vf_from_halves(vi_from_u16(p)); }
static BS_INLINE vf vf_from_bf16(const uint8_t *p) { return (vf)(vi_from_u16(p) << 16); }

/* Codes widen eight at a time to 16-bit integers, and four of those to 32 bits. */
typedef int16_t vh __attribute__((vector_size(16)));

static BS_INLINE vh vh_from_u8(const void *p)
{
    typedef uint8_t eight __attribute__((vector_size(8)));
    eight codes;
    memcpy(&codes, p, 8);
    return __builtin_convertvector(codes, vh);
}

static BS_INLINE vh vh_from_i8(const void *p)
{
    typedef int8_t eight __attribute__((vector_size(8)));
    eight codes;
    memcpy(&codes, p, 8);
    return __builtin_convertvector(codes, vh);
}

static BS_INLINE vf vf_from_half(vh codes, int high)
{
    typedef int16_t four __attribute__((vector_size(8)));
    four some;
    memcpy(&some, (const int16_t *)&codes + 4 * high, 8);
    return __builtin_convertvector(__builtin_convertvector(some, vi), vf);
}

/* Lanes VL * part onward of 32 codes, unsigned or signed. */
static BS_INLINE vf vf_from_u8(vb codes, int part)
{
    return vf_from_half(vh_from_u8((const uint8_t *)&codes + 8 * (part / 2)), part % 2);
}

static BS_INLINE vf vf_from_i8(vb codes, int part)
{
    return vf_from_half(vh_from_i8((const uint8_t *)&codes + 8 * (part / 2)), part % 2);
}

/* 16 bytes of nibbles: the low ones, then the high ones. */
static BS_INLINE vb vb_nibbles(const uint8_t *p)
{
    typedef uint8_t sixteen __attribute__((vector_size(16)));
    sixteen bytes, halves[2];
    memcpy(&bytes, p, 16);
    halves[0] = bytes & 15;
    halves[1] = bytes >> 4;
    return vb_load((const uint8_t *)halves);
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

/* Products of codes fit 16 bits; they widen as the even and the odd lanes of a vector. */
static BS_INLINE vi vi_even(vh v) { return ((vi)v << 16) >> 16; }
static BS_INLINE vi vi_odd(vh v) { return (vi)v >> 16; }

/* Lanes 0-3 gain the products of the first sixteen codes, lanes 4-7 of the rest, in whatever order;
   `w` unsigned (under 64, so that four products fit 16 bits) or signed, `x` signed. */
static BS_INLINE v8i dot4_u8(v8i acc, vb w, vb x)
{
    const uint8_t *a = (const uint8_t *)&w, *b = (const uint8_t *)&x;
    vi sums[2];
    for (int i = 0; i < 2; i++) {
        vh products = vh_from_u8(a + 16 * i) * vh_from_i8(b + 16 * i)
                      + vh_from_u8(a + 16 * i + 8) * vh_from_i8(b + 16 * i + 8);
        sums[i] = vi_even(products) + vi_odd(products);
    }
    v8i all;
    memcpy(&all, sums, sizeof all);
    return acc + all;
}

static BS_INLINE v8i dot4_i8(v8i acc, vb w, vb x)
{
    const uint8_t *a = (const uint8_t *)&w, *b = (const uint8_t *)&x;
    vi sums[2];
    for (int i = 0; i < 2; i++) {
        vh first = vh_from_i8(a + 16 * i) * vh_from_i8(b + 16 * i);
        vh second = vh_from_i8(a + 16 * i + 8) * vh_from_i8(b + 16 * i + 8);
        sums[i] = vi_even(first) + vi_odd(first) + vi_even(second) + vi_odd(second);
    }
    v8i all;
    memcpy(&all, sums, sizeof all);
    return acc + all;
}

/* Each of VO outputs gains four products of its own codes with one group of x. The codes lie [4][8],
   output i at place 2 i and output i + 4 at 2 i + 1: even lanes, then odd ones, are in order. */
static BS_INLINE voi vo_dot4_u8(voi acc, const uint8_t *w, int32_t x)
{
    vh products = {0};
    for (int c = 0; c < 4; c++)
        products += vh_from_u8(w + VO * c) * (int16_t)(int8_t)((uint32_t)x >> (8 * c));
    vi sums[2] = {vi_even(products), vi_odd(products)};
    voi all;
    memcpy(&all, sums, sizeof all);
    return acc + all;
}

static BS_INLINE voi vo_dot4_i8(voi acc, const uint8_t *w, int32_t x)
{
    vi sums[2] = {{0}};
    for (int c = 0; c < 4; c++) {
        vh products = vh_from_i8(w + VO * c) * (int16_t)(int8_t)((uint32_t)x >> (8 * c));
        sums[0] += vi_even(products);
        sums[1] += vi_odd(products);
    }
    voi all;
    memcpy(&all, sums, sizeof all);
    return acc + all;
}

/* Of eight vectors: lane i of `first` is the sum of vector i's lanes 0-3, of `second` of 4-7. */
static BS_INLINE void v8_halves(const v8i p[8], v8i *first, v8i *second)
{
    int32_t low[8], high[8];
    for (int i = 0; i < 8; i++) {
        int32_t lanes[8];
        memcpy(lanes, p + i, sizeof lanes);
        low[i] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
        high[i] = (lanes[4] + lanes[5]) + (lanes[6] + lanes[7]);
    }
    memcpy(first, low, sizeof low);
    memcpy(second, high, sizeof high);
}

/* Of eight rows: the sum of the products of the 32 nibbles at `offset` with the codes `x`. */
static BS_INLINE v8i v8_nibble_dots(const uint8_t *const rows[8], size_t offset, const uint8_t *x)
{
    v8i p[8], first, second;
    for (int i = 0; i < 8; i++) p[i] = dot4_u8((v8i){0}, vb_nibbles(rows[i] + offset), vb_load(x));
    v8_halves(p, &first, &second);
    return first + second;
}

/* The half floats that lie `offset` bytes into each of eight rows, and the ones right behind. */
static BS_INLINE v8f v8_from_f16(const uint8_t *const rows[8], size_t offset)
{
    uint16_t halves[8];
    for (int i = 0; i < 8; i++) memcpy(halves + i, rows[i] + offset, 2);
    vf both[2] = {vf_from_f16((const uint8_t *)halves), vf_from_f16((const uint8_t *)(halves + 4))};
    v8f all;
    memcpy(&all, both, sizeof all);
    return all;
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

/* Sixteen bytes at `offset` of VO rows: fours of them side by side, as vo_dot4 takes them. */
static BS_INLINE void vo_sixteen(const uint8_t *const rows[VO], size_t offset, vow fours[4])
{
    uint8_t *out = (uint8_t *)fours;
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < VO; i++) out[VO * k + 2 * (i % 4) + i / 4] = rows[i][offset + (size_t)k];
}

/* Words of VO rows side by side, as vo_dot4 takes them. */
static BS_INLINE vow vo_words(const uint8_t *p)
{
    vow words;
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < VO; i++) words[VO * c + 2 * (i % 4) + i / 4] = p[4 * i + c];
    return words;
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
