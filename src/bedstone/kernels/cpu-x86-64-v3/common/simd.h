/* Vectors of x86-64-v3: AVX2, FMA and F16C. The names are those of the generic simd.h. */
#ifndef BS_SIMD_H
#define BS_SIMD_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include <abi.h>

#define VL 8
#define VO 8
#define BS_TILE_ROWS 3
#define BS_CODE_ROWS 4
#define BS_QUERIES 2
#define BS_I8_BIAS 0

typedef float vf __attribute__((vector_size(32)));
typedef int32_t vi __attribute__((vector_size(32)));
typedef vf v8f;
typedef vi v8i;
typedef uint8_t vb __attribute__((vector_size(32)));
typedef vf vof;
typedef vi voi;
typedef vb vow;

#include <avx2.h>

static BS_INLINE vf vf_fma(vf a, vf b, vf c) { return v8_fma(a, b, c); }
static BS_INLINE vof vo_fma(vof a, vof b, vof c) { return v8_fma(a, b, c); }
static BS_INLINE float vf_sum(vf v) { return v8_sum(v); }
static BS_INLINE float vf_max(vf v) { return v8_max(v); }

static BS_INLINE vf vf_quad(const float *p) { return _mm256_broadcast_ps((const __m128 *)p); }

static BS_INLINE void vf_deal_quads(vf v[2])
{
    __m256 low = _mm256_permute2f128_ps(v[0], v[1], 0x20);
    v[1] = _mm256_permute2f128_ps(v[0], v[1], 0x31);
    v[0] = low;
}

static BS_INLINE vf vf_fold_quads(const vf v[4])
{
    __m256 a = _mm256_add_ps(_mm256_unpacklo_ps(v[0], v[1]), _mm256_unpackhi_ps(v[0], v[1]));
    __m256 b = _mm256_add_ps(_mm256_unpacklo_ps(v[2], v[3]), _mm256_unpackhi_ps(v[2], v[3]));
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
}

#define BS_LARGER

static BS_INLINE vf vf_larger(vf a, vf b) { return _mm256_max_ps(a, b); }
static BS_INLINE vf vf_smaller(vf a, vf b) { return _mm256_min_ps(a, b); }

static BS_INLINE vf vf_from_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static BS_INLINE vf vf_from_bf16(const uint8_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return (vf)_mm256_slli_epi32(wide, 16);
}

static BS_INLINE __m128i vb_eight(vb codes, int part)
{
    __m128i half = part < 2 ? _mm256_castsi256_si128((__m256i)codes)
                            : _mm256_extracti128_si256((__m256i)codes, 1);
    return part & 1 ? _mm_unpackhi_epi64(half, half) : half;
}

static BS_INLINE vf vf_from_u8(vb codes, int part)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(vb_eight(codes, part)));
}

static BS_INLINE vf vf_from_i8(vb codes, int part)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(vb_eight(codes, part)));
}

static BS_INLINE v8i dot4_u8(v8i acc, vb w, vb x)
{
    __m256i pairs = _mm256_maddubs_epi16((__m256i)w, (__m256i)x);
    return acc + (v8i)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

static BS_INLINE v8i dot4_i8(v8i acc, vb w, vb x)
{
    __m256i size = _mm256_sign_epi8((__m256i)w, (__m256i)w);
    __m256i signed_x = _mm256_sign_epi8((__m256i)x, (__m256i)w);
    return dot4_u8(acc, (vb)size, (vb)signed_x);
}

static BS_INLINE voi vo_dot4_u8(voi acc, const uint8_t *w, int32_t x)
{
    return dot4_u8(acc, vb_load(w), (vb)_mm256_set1_epi32(x));
}

static BS_INLINE voi vo_dot4_i8(voi acc, const uint8_t *w, int32_t x)
{
    return dot4_i8(acc, vb_load(w), (vb)_mm256_set1_epi32(x));
}

/* Eight rows of eight words to eight columns, `stride` words apart. */
static BS_INLINE void v8_transpose(const __m256 rows[8], float *out, int stride)
{
    __m256 pairs[8], fours[8];
    for (int i = 0; i < 4; i++) {
        pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            __m256 a = pairs[4 * i + j], b = pairs[4 * i + 2 + j];
            fours[4 * i + 2 * j] = _mm256_shuffle_ps(a, b, 0x44);
            fours[4 * i + 2 * j + 1] = _mm256_shuffle_ps(a, b, 0xee);
        }
    for (int j = 0; j < 4; j++) {
        _mm256_storeu_ps(out + j * stride, _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x20));
        _mm256_storeu_ps(out + (4 + j) * stride, _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x31));
    }
}

static BS_INLINE void vf_transpose(const float *const rows[VL], int at, float *out, int stride)
{
    __m256 values[8];
    for (int i = 0; i < 8; i++) values[i] = _mm256_loadu_ps(rows[i] + at);
    v8_transpose(values, out, stride);
}

/* Words of VO rows side by side, as vo_dot4 takes them. */
static BS_INLINE vow vo_words(const uint8_t *p) { return vb_load(p); }

/* Lane L of register i comes from row i + 4 L: words side by side are rows in their order. */
static BS_INLINE void vo_sixteen(const uint8_t *const rows[VO], size_t offset, vow fours[4])
{
    __m256i r[4];
    for (int i = 0; i < 4; i++) {
        __m128i low = _mm_loadu_si128((const __m128i *)(rows[i] + offset));
        r[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                       _mm_loadu_si128((const __m128i *)(rows[i + 4] + offset)), 1);
    }
    __m256i a = _mm256_unpacklo_epi32(r[0], r[1]), b = _mm256_unpacklo_epi32(r[2], r[3]);
    __m256i c = _mm256_unpackhi_epi32(r[0], r[1]), d = _mm256_unpackhi_epi32(r[2], r[3]);
    fours[0] = (vow)_mm256_unpacklo_epi64(a, b);
    fours[1] = (vow)_mm256_unpackhi_epi64(a, b);
    fours[2] = (vow)_mm256_unpacklo_epi64(c, d);
    fours[3] = (vow)_mm256_unpackhi_epi64(c, d);
}

#endif
