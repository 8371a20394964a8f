/* Norms of one unit of values: by its root mean square and a weight, or by its length. */
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

/* What every value of a unit is multiplied by before its weight. */
static BS_INLINE vf bs_norm_factor(const float *x, bs_norm norm)
{
    float mean = bs_sum_squares(x, norm.unit) / (float)norm.unit;
    return vf_set(1.0f / __builtin_sqrtf(mean + norm.eps));
}

/* Values [i, i + n) of a unit, n <= VL. */
static BS_INLINE vf bs_normed(const float *x, const float *w, bs_norm norm, vf factor, int i, int n)
{
    float offset = norm.plus_one ? 1.0f : 0.0f;
    return vf_load_n(x + i, n) * factor * (offset + vf_load_n(w + i, n));
}

/* `y` may be `x`. */
BS_STATIC void bs_norm_unit(const float *x, const float *w, bs_norm norm, float *y)
{
    vf factor = bs_norm_factor(x, norm);
    for (int i = 0; i < norm.unit; i += VL) {
        int n = bs_min(VL, norm.unit - i);
        vf_store_n(y + i, bs_normed(x, w, norm, factor, i, n), n);
    }
}

/* A unit over the root of its sum of squares; `y` may be `x`. */
BS_STATIC void bs_l2_unit(const float *x, int unit, float eps, float *y)
{
    vf factor = vf_set(1.0f / __builtin_sqrtf(bs_sum_squares(x, unit) + eps));
    for (int i = 0; i < unit; i += VL) {
        int n = bs_min(VL, unit - i);
        vf_store_n(y + i, vf_load_n(x + i, n) * factor, n);
    }
}

#endif
