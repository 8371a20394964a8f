/* Rows of float32 to int8 codes: blocks of 32 share a scale, max|x| / 127. */
#ifndef BS_QUANTIZE_H
#define BS_QUANTIZE_H

#include <vector.h>

#define BS_QBLOCK 32

typedef struct {
    int8_t *codes;
    float *scales;
    int32_t *sums; /* of the codes of each block */
} bs_quantized;

static BS_INLINE bs_quantized bs_quantized_out(bs_cursor *at)
{
    bs_quantized q;
    q.codes = bs_ptr(at);
    q.scales = bs_ptr(at);
    q.sums = bs_ptr(at);
    return q;
}

static BS_INLINE bs_quantized bs_quantized_at(bs_quantized q, size_t value)
{
    q.codes += value;
    q.scales += value / BS_QBLOCK;
    q.sums += value / BS_QBLOCK;
    return q;
}

/* Nearest integer, halves away from zero; |x| at most 127. */
static BS_INLINE vi vi_round(vf x)
{
    vi whole = __builtin_convertvector(x, vi);
    vf rest = x - __builtin_convertvector(whole, vf);
    return whole - (rest >= 0.5f) + (rest <= -0.5f);
}

static BS_INLINE void bs_quantize_block(const float *x, bs_quantized q)
{
    typedef int8_t bytes __attribute__((vector_size(VL)));
    /* the bits of sizes order as they do, and what is not finite above the rest */
    vi bits = {0};
    for (int i = 0; i < BS_QBLOCK; i += VL) {
        vi size = (vi)vf_abs(vf_load(x + i)), larger = size > bits;
        bits = (size & larger) | (bits & ~larger);
    }
    vf largest = (vf)bits;
    /* a value that is not finite makes the whole block's scale NaN: it must not turn into a number */
    float scale = vf_max(largest) / 127.0f + vf_sum(largest * 0.0f);
    int32_t sum = 0;
    if (!(scale > 0.0f)) {
        memset(q.codes, 0, BS_QBLOCK);
    } else {
        vi total = {0};
        for (int i = 0; i < BS_QBLOCK; i += VL) {
            vi codes = vi_round(vf_load(x + i) / scale);
            total += codes;
            bytes narrow = __builtin_convertvector(codes, bytes);
            memcpy(q.codes + i, &narrow, sizeof narrow);
        }
        sum = (int32_t)vf_sum(__builtin_convertvector(total, vf)); /* exact: less than 2^12 */
    }
    *q.scales = scale;
    *q.sums = sum;
}

/* A result's forms: floats, codes, or both; null where nobody wants one. */
typedef struct {
    float *y;
    bs_quantized q;
} bs_forms;

static BS_INLINE bs_forms bs_forms_out(bs_cursor *at, int to_float, int to_codes)
{
    bs_forms out = {0};
    if (to_float) out.y = bs_ptr(at);
    if (to_codes) out.q = bs_quantized_out(at);
    return out;
}

/* `count` values from `place` on; with codes they are one block. */
static BS_INLINE void bs_put_forms(bs_forms out, size_t place, const float *values, int count)
{
    if (out.y) memcpy(out.y + place, values, (size_t)count * sizeof(float));
    if (out.q.codes) bs_quantize_block(values, bs_quantized_at(out.q, place));
}

/* Sends for where `count` values will be put from `place` on. */
static BS_INLINE void bs_send_for_forms(bs_forms out, size_t place, int count)
{
    for (int i = 0; out.y && i < count; i += 16) __builtin_prefetch(out.y + place + i, 1, 3);
    if (!out.q.codes) return;
    bs_quantized q = bs_quantized_at(out.q, place);
    __builtin_prefetch(q.codes, 1, 3);
    __builtin_prefetch(q.scales, 1, 3);
    __builtin_prefetch(q.sums, 1, 3);
}

/* `count` values, a multiple of 32. */
BS_STATIC void bs_quantize_row(const float *x, int count, bs_quantized q)
{
    for (int i = 0; i < count; i += BS_QBLOCK) bs_quantize_block(x + i, bs_quantized_at(q, (size_t)i));
}

#endif
