/* Root-mean-square norm of one unit of values. */
#ifndef BS_NORM_H
#define BS_NORM_H

#include <vector.h>

typedef struct {
    int unit;
    float eps;
    int plus_one; /* the weight is 1 + w */
} bs_norm;

static float bs_sum_squares(const float *x, int n)
{
    vf sums[4] = {{0}};
    int i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL)
        for (int j = 0; j < 4; j++) {
            vf v = vf_load(x + i + j * VL);
            sums[j] = vf_fma(v, v, sums[j]);
        }
    for (; i < n; i += VL) {
        vf v = vf_load_n(x + i, bs_min(VL, n - i));
        sums[0] = vf_fma(v, v, sums[0]);
    }
    return vf_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/* `y` may be `x`. */
static void bs_norm_unit(const float *x, const float *w, bs_norm norm, float *y)
{
    float mean = bs_sum_squares(x, norm.unit) / (float)norm.unit;
    vf factor = vf_set(1.0f / __builtin_sqrtf(mean + norm.eps));
    float offset = norm.plus_one ? 1.0f : 0.0f;
    for (int i = 0; i < norm.unit; i += VL) {
        int n = bs_min(VL, norm.unit - i);
        vf weight = offset + vf_load_n(w + i, n);
        vf_store_n(y + i, vf_load_n(x + i, n) * factor * weight, n);
    }
}

#endif
