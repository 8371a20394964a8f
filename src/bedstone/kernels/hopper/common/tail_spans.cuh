// Spans as a tail's warps multiply them: those of `spans.cuh`, but of Q4_K with fewer steps that wait for each other.
#pragma once
#include "spans.cuh"

// Half a span is four pieces of sixteen bytes, one for each t: half of two blocks that follow each other. Rows of
// odd g take their halves the other way round: in shared memory eight lanes so read 128 bytes of two rows that lie a
// multiple of that apart. Activations stand in the columns of both halves, and each lane keeps of either product
// the columns that its rows have taken.
struct turned_q4_k {
    static constexpr u32 LINE = 128;

    template <int V>
    static __device__ __forceinline__ void add(float (&sum)[V][2], const u8 *low, const u8 *high, const coded_span &x) {
        place p;
        int c[2][V][4] = {};
        // whether this lane's column is the first, or the second, of the blocks of its piece
        bool here = p.g % 4 / 2 == p.t / 2, first = here && p.g % 2 == 0, second = here && p.g % 2;
        int near = 16 + 64 * (p.g % 2) + 16 * p.t, far = 16 + 64 * (1 - p.g % 2) + 16 * p.t;
        const uint4 rows[4] = {*(const uint4 *)(low + near), *(const uint4 *)(high + near), *(const uint4 *)(low + far),
                               *(const uint4 *)(high + far)};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            u32 b[V][2];
#pragma unroll
            for (int r = 0; r < V; ++r) {
                u32 mine = x.words(r)[8 * p.g + p.t % 2 * 4 + i];
                b[r][0] = first ? mine : 0, b[r][1] = second ? mine : 0;
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                u32 v = (&rows[2 * h].x)[i], w = (&rows[2 * h + 1].x)[i];
                // high nibbles stay where they are, sixteen times themselves
                u32 a[4] = {v & 0x0f0f0f0fu, w & 0x0f0f0f0fu, v & 0xf0f0f0f0u, w & 0xf0f0f0f0u};
#pragma unroll
                for (int r = 0; r < V; ++r) multiply_bytes<false>(c[h][r], a, b[r][0], b[r][1]);
            }
        }
        bool turned = p.g % 2 != p.t / 2;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const uint4 head = *(const uint4 *)(i ? high : low);
            u32 scales, least;
            format_q4_k::pair_levels(head.y, head.z, head.w, p.t, scales, least);
#pragma unroll
            for (int r = 0; r < V; ++r) {
                const float4 &by = *(const float4 *)(x.scales(r) + 2 * p.t);
                int one = turned ? c[1][r][2 * i] : c[0][r][2 * i], other = turned ? c[1][r][2 * i + 1] : c[0][r][2 * i + 1];
                sum[r][i] = scaled_pair(sum[r][i], head.x, scales, least, by, one, other);
            }
        }
    }
};

template <class F>
struct tail_spans : spans_of<F> {
    static constexpr u32 LINE = 16;
};
template <>
struct tail_spans<format_q4_k> : turned_q4_k {};

// From one row of a tile to the next, of so many bytes: eight of them are read at once, and so lie an odd number of
// sixteens apart, or where lines are longer whole ones.
template <class SPANS>
static __device__ __forceinline__ constexpr u32 pitch_of(u32 bytes) {
    return SPANS::LINE > 16 ? (bytes + SPANS::LINE - 1) / SPANS::LINE * SPANS::LINE : ((bytes + 15) / 16 | 1) * 16;
}
