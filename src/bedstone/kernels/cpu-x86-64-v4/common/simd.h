/* Vectors of x86-64-v4 with VNNI: AVX-512 F, BW, DQ, VL. The names are those of the generic simd.h. */
#ifndef BS_SIMD_H
#define BS_SIMD_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include <abi.h>

#define VL 16
#define VO 16
#define BS_TILE_ROWS 6
#define BS_CODE_ROWS 8
#define BS_QUERIES 4
#define BS_I8_BIAS 128

typedef float vf __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef uint8_t vb __attribute__((vector_size(32)));
typedef vf vof;
typedef vi voi;
typedef uint8_t vow __attribute__((vector_size(64)));

#include <avx2.h>

static BS_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static BS_INLINE vof vo_fma(vof a, vof b, vof c) { return _mm512_fmadd_ps(a, b, c); }

static BS_INLINE float vf_sum(vf v)
{
    return v8_sum(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}

#define BS_SUM_FOUR

/* Four vectors fold side by side, each in the steps of vf_sum. */
static BS_INLINE void vf_sum_four(const vf v[4], float *sums)
{
    __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(v[0], v[1], 0x44), _mm512_shuffle_f32x4(v[0], v[1], 0xee));
    __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(v[2], v[3], 0x44), _mm512_shuffle_f32x4(v[2], v[3], 0xee));
    __m512 four = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    __m512 two = _mm512_add_ps(four, _mm512_permute_ps(four, 0x4e));
    __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xb1));
    const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    _mm_storeu_ps(sums, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, one)));
}

static BS_INLINE vf vf_quad(const float *p) { return _mm512_broadcast_f32x4(_mm_loadu_ps(p)); }

static BS_INLINE void vf_deal_quads(vf v[4])
{
    __m512 a = _mm512_shuffle_f32x4(v[0], v[1], 0x44), b = _mm512_shuffle_f32x4(v[0], v[1], 0xee);
    __m512 c = _mm512_shuffle_f32x4(v[2], v[3], 0x44), d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
    v[0] = _mm512_shuffle_f32x4(a, c, 0x88);
    v[1] = _mm512_shuffle_f32x4(a, c, 0xdd);
    v[2] = _mm512_shuffle_f32x4(b, d, 0x88);
    v[3] = _mm512_shuffle_f32x4(b, d, 0xdd);
}

static BS_INLINE vf vf_fold_quads(const vf v[4])
{
    __m512 a = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
    __m512 b = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}

static BS_INLINE float vf_max(vf v)
{
    return v8_max(_mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}

#define BS_LARGER

static BS_INLINE vf vf_larger(vf a, vf b) { return _mm512_max_ps(a, b); }
static BS_INLINE vf vf_smaller(vf a, vf b) { return _mm512_min_ps(a, b); }

#define BS_SCALE

static BS_INLINE vf vf_scale(vf x, vf power) { return _mm512_scalef_ps(x, power); }

static BS_INLINE vf vf_from_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static BS_INLINE vf vf_from_bf16(const uint8_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return (vf)_mm512_slli_epi32(wide, 16);
}

static BS_INLINE __m128i vb_sixteen(vb codes, int part)
{
    return part ? _mm256_extracti128_si256((__m256i)codes, 1) : _mm256_castsi256_si128((__m256i)codes);
}

static BS_INLINE vf vf_from_u8(vb codes, int part)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(vb_sixteen(codes, part)));
}

static BS_INLINE vf vf_from_i8(vb codes, int part)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(vb_sixteen(codes, part)));
}

/* Sixteen values are one register: a nibble picks its value instead of being converted. */
#define BS_NIBBLE_VALUES

static BS_INLINE __m512 vf_nibble_table(vf scale, vf offset)
{
    const __m512 codes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_fmadd_ps(scale, codes, offset);
}

static BS_INLINE void vf_nibbles(const uint8_t *p, vf scale, vf offset, vf out[2])
{
    __m512 table = vf_nibble_table(scale, offset);
    __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    out[0] = _mm512_permutexvar_ps(bytes, table);
    out[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), table);
}

static BS_INLINE void vf_nibble_half(const uint8_t *p, int high, vf scale, vf offset, vf out[2])
{
    __m512 table = vf_nibble_table(scale, offset);
    for (int i = 0; i < 2; i++) {
        __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p + 16 * i)));
        bytes = _mm512_srl_epi32(bytes, _mm_cvtsi32_si128(4 * high));
        out[i] = _mm512_permutexvar_ps(bytes, table);
    }
}

static BS_INLINE v8i dot4_u8(v8i acc, vb w, vb x)
{
    return (v8i)_mm256_dpbusd_epi32((__m256i)acc, (__m256i)w, (__m256i)x);
}

/* A signed code is stored biased: see BS_I8_BIAS. */
static BS_INLINE v8i dot4_i8(v8i acc, vb w, vb x) { return dot4_u8(acc, w, x); }

static BS_INLINE voi vo_dot4_u8(voi acc, const uint8_t *w, int32_t x)
{
    return (voi)_mm512_dpbusd_epi32((__m512i)acc, _mm512_loadu_si512(w), _mm512_set1_epi32(x));
}

static BS_INLINE voi vo_dot4_i8(voi acc, const uint8_t *w, int32_t x) { return vo_dot4_u8(acc, w, x); }

static BS_INLINE void vf_transpose(const float *const rows[VL], int at, float *out, int stride)
{
    __m512 a[16], b[16];
    for (int i = 0; i < 8; i++) {
        __m512 even = _mm512_loadu_ps(rows[2 * i] + at), odd = _mm512_loadu_ps(rows[2 * i + 1] + at);
        a[2 * i] = _mm512_unpacklo_ps(even, odd);
        a[2 * i + 1] = _mm512_unpackhi_ps(even, odd);
    }
    /* b[4 * i + j]: column j of each 128-bit lane, rows 4 i to 4 i + 3 */
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) {
            b[4 * i + 2 * j] = _mm512_shuffle_ps(a[4 * i + j], a[4 * i + 2 + j], 0x44);
            b[4 * i + 2 * j + 1] = _mm512_shuffle_ps(a[4 * i + j], a[4 * i + 2 + j], 0xee);
        }
    for (int j = 0; j < 4; j++) {
        __m512 even_low = _mm512_shuffle_f32x4(b[j], b[4 + j], 0x88);
        __m512 odd_low = _mm512_shuffle_f32x4(b[j], b[4 + j], 0xdd);
        __m512 even_high = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0x88);
        __m512 odd_high = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0xdd);
        _mm512_storeu_ps(out + j * stride, _mm512_shuffle_f32x4(even_low, even_high, 0x88));
        _mm512_storeu_ps(out + (4 + j) * stride, _mm512_shuffle_f32x4(odd_low, odd_high, 0x88));
        _mm512_storeu_ps(out + (8 + j) * stride, _mm512_shuffle_f32x4(even_low, even_high, 0xdd));
        _mm512_storeu_ps(out + (12 + j) * stride, _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd));
    }
}

/* Steps of `vo_sixteen` that a product may take in turn with its own: registers hold both. */
#define BS_PACKS_ALONG 1

/* Lane L comes from row i + 4 L: words side by side are rows in their order. */
static BS_INLINE vow vo_gather(const uint8_t *const rows[VO], size_t offset, int i)
{
    __m512i r = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(rows[i] + offset)));
    r = _mm512_inserti32x4(r, _mm_loadu_si128((const __m128i *)(rows[i + 4] + offset)), 1);
    r = _mm512_inserti32x4(r, _mm_loadu_si128((const __m128i *)(rows[i + 8] + offset)), 2);
    return (vow)_mm512_inserti32x4(r, _mm_loadu_si128((const __m128i *)(rows[i + 12] + offset)), 3);
}

static BS_INLINE void vo_deal_words(vow r[4])
{
    __m512i a = (__m512i)r[0], b = (__m512i)r[1], c = (__m512i)r[2], d = (__m512i)r[3];
    r[0] = (vow)_mm512_unpacklo_epi32(a, b);
    r[1] = (vow)_mm512_unpackhi_epi32(a, b);
    r[2] = (vow)_mm512_unpacklo_epi32(c, d);
    r[3] = (vow)_mm512_unpackhi_epi32(c, d);
}

static BS_INLINE void vo_deal_pairs(vow r[4])
{
    __m512i a = (__m512i)r[0], b = (__m512i)r[1], c = (__m512i)r[2], d = (__m512i)r[3];
    r[0] = (vow)_mm512_unpacklo_epi64(a, c);
    r[1] = (vow)_mm512_unpackhi_epi64(a, c);
    r[2] = (vow)_mm512_unpacklo_epi64(b, d);
    r[3] = (vow)_mm512_unpackhi_epi64(b, d);
}

static BS_INLINE void vo_sixteen(const uint8_t *const rows[VO], size_t offset, vow fours[4])
{
    for (int i = 0; i < 4; i++) fours[i] = vo_gather(rows, offset, i);
    vo_deal_words(fours);
    vo_deal_pairs(fours);
}

/* Words of VO rows side by side, as vo_dot4 takes them. */
static BS_INLINE vow vo_words(const uint8_t *p) { return (vow)_mm512_loadu_si512(p); }

static BS_INLINE voi vo_dot4(voi acc, vow w, int32_t x)
{
    return (voi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)w, _mm512_set1_epi32(x));
}

static BS_INLINE vof vo_join(v8f low, v8f high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

#endif
