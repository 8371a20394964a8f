/* Products of pairs of bfloat16, by AVX512_BF16. It takes subnormal values for zero. */
#ifndef BS_PAIRS_H
#define BS_PAIRS_H

#include <vector.h>

#define BS_PAIR_PRODUCTS 1

/* Each lane gains the products of a pair of values. */
static BS_INLINE vf vf_pairs(vf acc, const uint8_t *x, const uint8_t *w)
{
    return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_loadu_si512(x), (__m512bh)_mm512_loadu_si512(w));
}

/* 2 VL values to the nearest, ties to even. */
static BS_INLINE void vf_round_pairs(vf low, vf high, uint8_t *to)
{
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

#endif
