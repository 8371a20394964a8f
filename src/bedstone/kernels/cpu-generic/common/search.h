/* The largest of a row of logits, the first of equals, and whether all of them are finite. */
#ifndef BS_SEARCH_H
#define BS_SEARCH_H

#include <vector.h>

#define BS_CHUNK 1024

typedef struct {
    float value;
    int index;
    int finite;
} best;

/* The first index of `value` in [from, from + n). */
BS_STATIC int find(const float *x, int from, int n, float value)
{
    int i = from;
    while (i < from + n - 1 && x[i] != value) i++;
    return i;
}

/* The largest of a chunk; `poison` turns NaN where a value is not finite. */
BS_STATIC float largest(const float *x, int n, vf *poison)
{
    vf top[2] = {vf_set(-BS_INFINITY), vf_set(-BS_INFINITY)}, product = {0};
    int i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        vf a = vf_load(x + i), b = vf_load(x + i + VL);
        top[0] = vf_larger(a, top[0]);
        top[1] = vf_larger(b, top[1]);
        product += a * 0.0f + b * 0.0f;
    }
    float value = vf_max(vf_larger(top[0], top[1]));
    for (; i < n; i++) {
        value = x[i] > value ? x[i] : value;
        product += x[i] * 0.0f;
    }
    *poison += product;
    return value;
}

BS_STATIC best search(const float *logits, int vocab)
{
    best found = {-BS_INFINITY, 0, 1};
    vf poison = {0};
    for (int i = 0; i < vocab; i += BS_CHUNK) {
        int n = bs_min(BS_CHUNK, vocab - i);
        float value = largest(logits + i, n, &poison);
        if (value > found.value) {
            found.value = value;
            found.index = i;
        }
    }
    found.finite = vf_sum(poison) == 0.0f;
    found.index = find(logits, found.index, bs_min(BS_CHUNK, vocab - found.index), found.value);
    return found;
}

#endif
