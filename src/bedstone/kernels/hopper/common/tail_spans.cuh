// Spans as a tail's warps multiply them: those of `spans.cuh`, but of Q4_K with fewer steps that wait for each other,
// and what a lane always does found once.
#pragma once
#include "spans.cuh"

// Makes the compiler have x by now, and not find it again later.
template <class T>
static __device__ __forceinline__ void settle(T &x) {
    static_assert(sizeof(T) == 4, "a word");
    asm volatile("" : "+r"(*(u32 *)&x));
}

template <class F>
struct tail_spans {
    static constexpr u32 LINE = 16;

    __device__ __forceinline__ void add(float (&sum)[2], const u8 *low, const u8 *high, const coded_span &x) const {
        spans_of<F>::template add<1>(reinterpret_cast<float(&)[1][2]>(sum), low, high, x);
    }
};

// Half a span is four pieces of sixteen bytes, one for each t: half of two blocks that follow each other. Rows of
// odd g take their halves the other way round: in shared memory eight lanes so read 128 bytes of two rows that lie a
// multiple of that apart. Activations stand in the columns of both halves, and each lane keeps of either product
// the columns that its rows have taken.
template <>
struct tail_spans<format_q4_k> {
    static constexpr u32 LINE = 128;

    int near, far;      // where a row's halves are
    int words, pair;    // and a row of activations' words, and scales
    u32 first, second;  // all ones: this lane's column is the first, or the second, of the blocks of its piece
    int turned, later, shift;

    __device__ __forceinline__ tail_spans() {
        place p;
        bool here = p.g % 4 / 2 == p.t / 2;
        near = 16 + 64 * (p.g % 2) + 16 * p.t, far = 16 + 64 * (1 - p.g % 2) + 16 * p.t;
        words = 32 * p.g + p.t % 2 * 16, pair = 16 * p.t;
        first = here && p.g % 2 == 0 ? 0xffffffffu : 0, second = here && p.g % 2 ? 0xffffffffu : 0;
        turned = p.g % 2 != p.t / 2, later = p.t / 2, shift = p.t % 2 * 16;
        settle(near), settle(far), settle(words), settle(pair), settle(first), settle(second);
        settle(turned), settle(later), settle(shift);
    }
    __device__ __forceinline__ void add(float (&sum)[2], const u8 *low, const u8 *high, const coded_span &x) const {
        int c[2][4] = {};
        const uint4 mine = *(const uint4 *)(x.codes + words);
        const uint4 rows[4] = {*(const uint4 *)(low + near), *(const uint4 *)(high + near), *(const uint4 *)(low + far),
                               *(const uint4 *)(high + far)};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            u32 code = (&mine.x)[i], b[2] = {code & first, code & second};
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                u32 v = (&rows[2 * h].x)[i], w = (&rows[2 * h + 1].x)[i];
                // high nibbles stay where they are, sixteen times themselves
                u32 a[4] = {v & 0x0f0f0f0fu, w & 0x0f0f0f0fu, v & 0xf0f0f0f0u, w & 0xf0f0f0f0u};
                multiply_bytes<false>(c[h], a, b[0], b[1]);
            }
        }
        const float4 by = *(const float4 *)(x.pairs + pair);
        add_row(sum[0], low, by, turned ? c[1][0] : c[0][0], turned ? c[1][1] : c[0][1]);
        add_row(sum[1], high, by, turned ? c[1][2] : c[0][2], turned ? c[1][3] : c[0][3]);
    }
    __device__ __forceinline__ void add_row(float &sum, const u8 *row, const float4 &by, int one, int other) const {
        const uint4 head = *(const uint4 *)row;
        u32 scales, least;
        format_q4_k::pair_levels(head.y, head.z, head.w, later, shift, scales, least);
        sum = scaled_pair(sum, head.x, scales, least, by, one, other);
    }
};

// From one row of a tile to the next, of so many bytes: eight of them are read at once, and so lie an odd number of
// sixteens apart, or where lines are longer whole ones.
template <class SPANS>
static __device__ __forceinline__ constexpr u32 pitch_of(u32 bytes) {
    return SPANS::LINE > 16 ? (bytes + SPANS::LINE - 1) / SPANS::LINE * SPANS::LINE : ((bytes + 15) / 16 | 1) * 16;
}
