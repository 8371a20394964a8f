/* Int8 activations times weight rows of a quantized format.
 *
 * A block's 32 products are summed exactly in integers, then scaled into the sum, block by block:
 *     sum += (w scale * x scale) * products [ + w offset * (x scale * sum of x codes) ]
 */
#ifndef BS_CODE_PRODUCT_H
#define BS_CODE_PRODUCT_H

#include <weights.h>

#if BS_SIGNED
#define bs_dot4 dot4_i8
#define bs_vo_dot4 vo_dot4_i8
#else
#define bs_dot4 dot4_u8
#define bs_vo_dot4 vo_dot4_u8
#endif

/* The headers of eight rows at one place: scales and offsets of the 32s behind it. */
typedef struct {
    v8f scale, offset;
#if BS_FORMAT == BS_Q4_K
    uint8_t six[16][8]; /* scale of each 32, then its offset; a byte a row */
#elif BS_FORMAT == BS_Q6_K
    uint8_t scales[16][8]; /* of each 16 */
#endif
} bs_headers;

static BS_INLINE void bs_headers_load(const uint8_t *const w[8], size_t at, bs_headers *h)
{
#if BS_FORMAT == BS_Q4_1
    v8_from_f16_pair(w, at, &h->scale, &h->offset);
#elif BS_FORMAT == BS_Q4_K
    v8_from_f16_pair(w, at, &h->scale, &h->offset);
    uint8_t six[8][16];
    for (int i = 0; i < 8; i++) bs_six_bits(w[i] + at + 4, six[i]);
    bytes_transpose(six, h->six);
#elif BS_FORMAT == BS_Q6_K
    /* the half float ends the block: read it through the word that ends there */
    v8f before;
    v8_from_f16_pair(w, at + 206, &before, &h->scale);
    uint8_t scales[8][16];
    for (int i = 0; i < 8; i++) memcpy(scales[i], w[i] + at + 192, 16);
    bytes_transpose(scales, h->scales);
#else
    h->scale = v8_from_f16(w, at);
#endif
}

static BS_INLINE v8f bs_scale(const bs_headers *h, int j)
{
    BS_UNUSED(j);
#if BS_FORMAT == BS_Q4_K
    return h->scale * v8_from_i32(v8_from_u8(h->six[j]));
#else
    return h->scale;
#endif
}

static BS_INLINE v8f bs_offset(const bs_headers *h, int j)
{
    BS_UNUSED(j);
#if BS_FORMAT == BS_Q4_K
    return -(h->offset * v8_from_i32(v8_from_u8(h->six[8 + j])));
#else
    return h->offset;
#endif
}

/* The exact products of 32 values of eight rows with the codes `x`, whose sum is `total`; the zero and
   inner scales are applied. */
static BS_INLINE v8i bs_eight_dots(const uint8_t *const w[8], size_t at, const bs_headers *h, int j,
                                   const uint8_t *x, int32_t total)
{
    BS_UNUSED(h);
#if BS_FORMAT == BS_Q4_0 || BS_FORMAT == BS_Q4_1
    BS_UNUSED(j);
    return v8_nibble_dots(w, at + BS_BLOCK_BYTES - 16, x) - BS_ZERO * total;
#else
    vb codes = vb_load(x);
    v8i p[8], first, second;
#if BS_TWO_SCALES
    BS_UNUSED(total);
    v8i start = -BS_ZERO * dot4_u8((v8i){0}, (uint8_t)1 - (vb){0}, codes);
#else
    v8i start = {0};
#endif
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) p[i] = bs_dot4(start, bs_codes(w[i] + at, j), codes);
    v8_halves(p, &first, &second);
#if BS_TWO_SCALES
    return first * v8_from_i8(h->scales[2 * j]) + second * v8_from_i8(h->scales[2 * j + 1]);
#else
    return first + second - BS_ZERO * total;
#endif
#endif
}

/* One activation row with eight weight rows, 32 products of each at a time. */
static BS_INLINE v8f bs_eight(const uint8_t *const w[8], const bs_activations *a, size_t row,
                              size_t ahead)
{
    size_t blocks = (size_t)a->k / 32;
    const uint8_t *x = (const uint8_t *)a->codes + row * (size_t)a->pitch;
    const float *scales = a->scales + row * (size_t)a->pitch / 32;
    const int32_t *sums = a->sums + row * (size_t)a->pitch / 32;
    v8f acc = {0};
    for (size_t b = 0; b < blocks; b += BS_BLOCKS) {
        size_t at = b / BS_BLOCKS * BS_BLOCK_BYTES;
        bs_headers headers;
        bs_headers_load(w, at, &headers);
        for (int i = 0; i < 8; i++)
            for (size_t line = 0; line < BS_BLOCK_BYTES; line += 64)
                __builtin_prefetch(w[i] + at + line + ahead, 0, 2);
        for (int j = 0; j < BS_BLOCKS; j++) {
            v8i dot = bs_eight_dots(w, at, &headers, j, x + 32 * (b + (size_t)j), sums[b + (size_t)j]);
            v8f scale = bs_scale(&headers, j) * scales[b + (size_t)j];
            acc = v8_fma(scale, v8_from_i32(dot), acc);
#if BS_HAS_OFFSET
            v8f total = v8_set(scales[b + (size_t)j] * (float)sums[b + (size_t)j]);
            acc = v8_fma(bs_offset(&headers, j), total, acc);
#endif
        }
    }
    return acc;
}

#endif
