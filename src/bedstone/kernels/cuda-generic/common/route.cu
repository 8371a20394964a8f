// route of float activations.
#include "router.cuh"

#define AT_ONCE 2  // experts a warp multiplies by

// The logits of rows [first, first + count) into `scores` [ROUTED_ROWS, experts].
static __device__ __forceinline__ void make_logits(const Router<float> &r, int first, int count, float *scores) {
    int experts = r.choice.experts, step = warps_of_cluster() * AT_ONCE;
    for (int e = warp_of_cluster() * AT_ONCE; e < experts; e += step)
        for (int row = 0; row < count; row++) {
            Rows<AT_ONCE> w;
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) w.at[i] = r.w + min(e + i, experts - 1) * format::bytes(r.k);
            Products<AT_ONCE> made = dot_rows<format, AT_ONCE>(w, r.x + (i64)(first + row) * r.k, r.k);
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                if (threadIdx.x % 32 == i && e + i < experts) scores[row * experts + e + i] = made.at[i];
        }
}

ROUTE(route_, , float, x, , nullptr)
ROUTE(route_, _b, float, x, BIAS, b)
