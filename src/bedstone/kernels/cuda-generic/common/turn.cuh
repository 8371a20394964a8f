// A head's rotation by its row's position, normed first or not: what a warp does.
#pragma once
#include "part.cuh"

#define PAIR_NEIGHBOURS 1  // kind: values 2i and 2i + 1 turn together, else i and i + rot / 2

// Values [offset, offset + rot) of each head turn.
struct Turn {
    const int *position;
    const float *cos, *sin;  // [positions, rot / 2]
    int head_dim, rot, kind, offset;
};

struct Norm {
    float eps;
    int plus_one;
};

// Two values of a head, and what scales and turns them.
struct Pair {
    float a, b, scale_a, scale_b, cos, sin;
};

// What LANES threads of a warp do with a head of values at(i). PAIRS of each are on their way before the mean
// of the head is known.
template <int LANES, int PAIRS, class At>
struct Head {
    At at;
    const float *w;  // null: not normed
    Turn turn;
    Norm norm;
    Pair early[PAIRS];
    float squares[32 / LANES];

    __device__ __forceinline__ Head(At at, const float *w, const Turn &turn, Norm norm)
        : at(at), w(w), turn(turn), norm(norm) {}

    static __device__ __forceinline__ int lane() { return threadIdx.x % LANES; }

    // Where the values of pair i are.
    __device__ __forceinline__ int first(int i) const {
        return turn.offset + (turn.kind == PAIR_NEIGHBOURS ? 2 * i : i);
    }
    __device__ __forceinline__ int second(int i) const {
        return first(i) + (turn.kind == PAIR_NEIGHBOURS ? 1 : turn.rot / 2);
    }

    // `angle`: where the turns of the row's position are.
    __device__ __forceinline__ Pair pair(int i, i64 angle) const {
        int a = first(i), b = second(i);
        return Pair{at(a), at(b), w ? w[a] : 0.0f, w ? w[b] : 0.0f, turn.cos[angle + i], turn.sin[angle + i]};
    }

    __device__ __forceinline__ void load(i64 angle) {
#pragma unroll
        for (int n = 0; n < PAIRS; n++)
            if (lane() + LANES * n < turn.rot / 2) early[n] = pair(lane() + LANES * n, angle);
        if (!w) return;
#pragma unroll
        for (int n = 0; n < 32 / LANES; n++) squares[n] = by_fours(4 * (lane() + LANES * n));
    }
    // The sum that one of 32 lanes has in `norm` where a warp has a unit.
    __device__ __forceinline__ float by_fours(int first) const {
        float sum = 0.0f;
        for (int i = first; i < turn.head_dim; i += 128)
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (i + j < turn.head_dim) sum = fmaf(at(i + j), at(i + j), sum);
        return sum;
    }
    __device__ __forceinline__ float scale_of() const {
        if (!w) return 1.0f;
        float sum = 32 / LANES == 1 ? squares[0] : squares[0] + squares[32 / LANES - 1];
#pragma unroll
        for (int step = LANES / 2; step; step >>= 1) sum += __shfl_xor_sync(BS_FULL, sum, step);
        return 1.0f / sqrtf(sum / (float)turn.head_dim + norm.eps);
    }

    template <class T>
    __device__ __forceinline__ void give(T *y, i64 angle) const {
        float by = scale_of();
        if (!y) return;
#pragma unroll
        for (int n = 0; n < PAIRS; n++)
            if (lane() + LANES * n < turn.rot / 2) put(lane() + LANES * n, early[n], by, y);
#pragma unroll 1
        for (int i = lane() + LANES * PAIRS; i < turn.rot / 2; i += LANES) put(i, pair(i, angle), by, y);
        if (turn.rot == turn.head_dim) return;
#pragma unroll 1
        for (int i = lane(); i < turn.head_dim; i += LANES)
            if (i < turn.offset || i >= turn.offset + turn.rot)
                y[i] = from_f32<T>(scaled(at(i), by, w ? w[i] : 0.0f));
    }
    __device__ __forceinline__ float scaled(float x, float by, float scale) const {
        return w ? __fmul_rn(__fmul_rn(x, by), __fadd_rn(norm.plus_one ? 1.0f : 0.0f, scale)) : x;
    }
    template <class T>
    __device__ __forceinline__ void put(int i, const Pair &p, float by, T *y) const {
        float a = scaled(p.a, by, p.scale_a), b = scaled(p.b, by, p.scale_b);
        y[first(i)] = from_f32<T>(__fsub_rn(__fmul_rn(a, p.cos), __fmul_rn(b, p.sin)));
        y[second(i)] = from_f32<T>(__fadd_rn(__fmul_rn(b, p.cos), __fmul_rn(a, p.sin)));
    }
};

// A row that has no position is one that nobody reads, but the tables begin at position 0.
static __device__ __forceinline__ i64 angle_of(const Turn &turn) {
    return (i64)max(turn.position[blockIdx.x], 0) * (turn.rot / 2);
}

