// Pieces of the positions put together: each has a running maximum, a sum and values relative to it.
#pragma once
#include "attention.cuh"

// The state of a piece, or of several put together.
struct State {
    float top[HEADS], sum[HEADS];
};

// A sum and one of its values gain those of another piece.
struct Merged {
    float top, sum, value;

    __device__ __forceinline__ void add(float other_top, float other_sum, float other_value) {
        // a piece without positions leaves every bit as it is
        if (other_sum == 0.0f && other_top == -BS_INFINITY) return;
        float highest = fmaxf(top, other_top);
        float own = shrunk(top, highest), other = shrunk(other_top, highest);
        sum = fmaf(sum, own, __fmul_rn(other_sum, other));
        value = fmaf(value, own, __fmul_rn(other_value, other));
        top = highest;
    }
};

template <class K>
static __device__ __forceinline__ void finish_value(const Attention<K> &a, const Heads &heads, int i,
                                                    const Merged &merged) {
    // a row before the first position sees nothing: its sum is empty, its output zero
    float whole = heads.span.last < heads.span.first ? 1.0f : merged.sum;
    a.finish(heads.row, heads.first + i / a.dv, i % a.dv, Pack<1>{{__fdiv_rn(merged.value, whole)}});
}

#define MOST_BLOCKS 16  // of a cluster

// Each block of a cluster has attended a piece, whose values are [HEADS][dv]; each finishes a share of
// them. All pieces are read before any is added: the other blocks are far away.
template <class K>
static __device__ __forceinline__ void merge_cluster(const Attention<K> &a, float *values, const Heads &heads,
                                                     State &state) {
    int blocks = cluster_size();
    cluster_sync();
    for (int i = cluster_rank() * ATTEND_THREADS + threadIdx.x; i < heads.count * a.dv; i += blocks * ATTEND_THREADS) {
        Merged piece[MOST_BLOCKS], merged = {-BS_INFINITY, 0.0f, 0.0f};
        int h = i / a.dv;
#pragma unroll
        for (int rank = 0; rank < MOST_BLOCKS; rank++) {
            if (rank >= blocks) break;
            const State *other = of_block(&state, rank);
            piece[rank] = Merged{other->top[h], other->sum[h], of_block(values, rank)[i]};
        }
#pragma unroll
        for (int rank = 0; rank < MOST_BLOCKS; rank++) {
            if (rank >= blocks) break;
            merged.add(piece[rank].top, piece[rank].sum, piece[rank].value);
        }
        finish_value(a, heads, i, merged);
    }
    cluster_sync();
}
