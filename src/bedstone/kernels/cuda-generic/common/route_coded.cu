// route of coded activations: the rows of a cluster are the columns of one tile.
#include "router.cuh"
#include "tile.cuh"

// The logits of rows [first, first + count) into `scores` [ROUTED_ROWS, experts].
static __device__ __forceinline__ void make_logits(const Router<code_t> &r, int first, int count, float *scores) {
    int experts = r.choice.experts;
    for (int from = warp_of_cluster() * 16; from < experts; from += warps_of_cluster() * 16) {
        Tile<1, 1> tile;
        tile.k = r.k;
        tile.eights = 1;
#pragma unroll
        for (int h = 0; h < 2; h++)
            tile.w[0][h] = r.w + min(from + tile_group() + 8 * h, experts - 1) * format::bytes(r.k);
        tile.x[0] = r.x + (i64)(first + min(tile_group(), count - 1)) * r.k;
        multiply<format>(tile);
        each_sum(tile, [&](int output, int column, const float (&made)[1]) {
            if (column < count && from + output < experts) scores[column * experts + from + output] = made[0];
        });
    }
}

ROUTE(route_q_, , code_t, xq, , nullptr)
ROUTE(route_q_, _b, code_t, xq, BIAS, b)
