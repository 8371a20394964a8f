/* What every set builds from its vectors: loads and stores of any length, selection, elementwise maths.
 *
 * A short vector is padded with zeros, so a tail goes through the same operations as the rest.
 */
#ifndef BS_VECTOR_H
#define BS_VECTOR_H

#include <simd.h>

#define BS_INFINITY __builtin_inff()

static BS_INLINE vf vf_set(float x) { return x - (vf){0}; }
static BS_INLINE v8f v8_set(float x) { return x - (v8f){0}; }
static BS_INLINE v8f v8_from_i32(v8i v) { return __builtin_convertvector(v, v8f); }

static BS_INLINE vf vf_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

static BS_INLINE void vf_store(float *p, vf v) { memcpy(p, &v, sizeof v); }

/* The first `n` lanes, n <= VL; the rest are zero. */
static BS_INLINE vf vf_load_n(const float *p, int n)
{
    if (n == VL) return vf_load(p);
    vf v = {0};
    memcpy(&v, p, (size_t)n * sizeof(float));
    return v;
}

static BS_INLINE void vf_store_n(float *p, vf v, int n)
{
    if (n == VL) vf_store(p, v);
    else memcpy(p, &v, (size_t)n * sizeof(float));
}

static BS_INLINE vf vf_select(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

#ifndef BS_SUM_FOUR

/* The sums of four vectors, each as vf_sum folds it. */
static BS_INLINE void vf_sum_four(const vf v[4], float *sums)
{
    for (int i = 0; i < 4; i++) sums[i] = vf_sum(v[i]);
}

#endif

#ifndef BS_NIBBLE_VALUES

/* scale * nibble + offset: of 16 bytes' low nibbles, then their high ones. */
static BS_INLINE void vf_nibbles(const uint8_t *p, vf scale, vf offset, vf out[32 / VL])
{
    vb codes = vb_nibbles(p);
    for (int i = 0; i < 32 / VL; i++) out[i] = vf_fma(scale, vf_from_u8(codes, i), offset);
}

/* The same of the low or the high nibbles of 32 bytes. */
static BS_INLINE void vf_nibble_half(const uint8_t *p, int high, vf scale, vf offset, vf out[32 / VL])
{
    vb codes = vb_nibble_half(p, high);
    for (int i = 0; i < 32 / VL; i++) out[i] = vf_fma(scale, vf_from_u8(codes, i), offset);
}

#endif

static BS_INLINE vf vf_abs(vf v) { return (vf)((vi)v & 0x7fffffff); }

/* `v` with the sign of `sign`. */
static BS_INLINE vf vf_copysign(vf v, vf sign)
{
    return (vf)(((vi)v & 0x7fffffff) | ((vi)sign & (int32_t)0x80000000u));
}

#ifndef BS_LARGER

/* The larger of two, the second where one is NaN. */
static BS_INLINE vf vf_larger(vf a, vf b) { return vf_select(a > b, a, b); }
static BS_INLINE vf vf_smaller(vf a, vf b) { return vf_select(a < b, a, b); }

#endif

#ifndef BS_SCALE

/* x times 2^power, an integer: by two factors, so that none leaves the normal range where the product
   does not. */
static BS_INLINE vf vf_scale(vf x, vf power)
{
    /* the low bits of 1.5 * 2^23 and an integer hold the integer */
    vi whole = (vi)(power + 0x1.8p+23f) - (vi)vf_set(0x1.8p+23f), half = whole >> 1;
    vf first = (vf)((half + 127) << 23), second = (vf)((whole - half + 127) << 23);
    return x * first * second;
}

#endif

/* e^x within an ulp or two; 0 and infinity at the ends, NaN stays NaN. */
static BS_INLINE vf vf_exp(vf x)
{
    x = vf_smaller(vf_set(130.0f), vf_larger(vf_set(-150.0f), x));
    /* adding 1.5 * 2^23 rounds x / ln 2 to an integer */
    vf n = vf_fma(x, vf_set(0x1.715476p+0f), vf_set(0x1.8p+23f)) - 0x1.8p+23f;
    /* ln 2 in two pieces: n times the first is exact */
    vf r = vf_fma(n, vf_set(-0x1.63p-1f), x);
    r = vf_fma(n, vf_set(0x1.bd0106p-13f), r);
    vf p = vf_set(0x1.9f0896p-13f);
    p = vf_fma(p, r, vf_set(0x1.6d8d06p-10f));
    p = vf_fma(p, r, vf_set(0x1.111270p-7f));
    p = vf_fma(p, r, vf_set(0x1.55548ep-5f));
    p = vf_fma(p, r, vf_set(0x1.555554p-3f));
    p = vf_fma(p, r, vf_set(0.5f));
    vf value = vf_fma(p, r * r, r) + 1.0f;
    return vf_scale(value, n);
}

static BS_INLINE vf vf_tanh(vf x)
{
    vf size = vf_abs(x), z = x * x;
    vf p = vf_set(-0.0056015598f);
    p = vf_fma(p, z, vf_set(0.020549612f));
    p = vf_fma(p, z, vf_set(-0.053713467f));
    p = vf_fma(p, z, vf_set(0.13331145f));
    p = vf_fma(p, z, vf_set(-0.33333272f));
    vf small = vf_fma(p * z, x, x);
    vf large = vf_copysign(1.0f - 2.0f / (vf_exp(size + size) + 1.0f), x);
    return vf_select(size < 0.625f, small, large);
}

static BS_INLINE vf vf_sigmoid(vf x) { return 1.0f / (1.0f + vf_exp(-x)); }
static BS_INLINE vf vf_silu(vf x) { return x / (1.0f + vf_exp(-x)); }

/* max(x, 0) + log(1 + e^-|x|), the log by its series in y / (2 + y), at most 1/3. */
static BS_INLINE vf vf_softplus(vf x)
{
    vf y = vf_exp(-vf_abs(x)), s = y / (2.0f + y), z = s * s;
    vf p = vf_set(2.0f / 15.0f);
    p = vf_fma(p, z, vf_set(2.0f / 13.0f));
    p = vf_fma(p, z, vf_set(2.0f / 11.0f));
    p = vf_fma(p, z, vf_set(2.0f / 9.0f));
    p = vf_fma(p, z, vf_set(2.0f / 7.0f));
    p = vf_fma(p, z, vf_set(2.0f / 5.0f));
    p = vf_fma(p, z, vf_set(2.0f / 3.0f));
    p = vf_fma(p, z, vf_set(2.0f));
    /* written so that NaN stays NaN */
    return vf_select(x < 0.0f, vf_set(0.0f), x) + p * s;
}

/* x / 2 * (1 + tanh u) written as x * sigmoid(2 u), which does not cancel where u is far below 0. */
static BS_INLINE vf vf_gelu_tanh(vf x)
{
    vf twice = x * vf_fma(x * x, vf_set(0.07135481627f), vf_set(1.595769122f));
    return x / (1.0f + vf_exp(-twice));
}

#endif
