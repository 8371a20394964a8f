// argmax, argmax_rows: the largest logit's index, and the advance to the next step; one cluster.
//
// Ties take the lower index. A logit that is not finite is an error: nothing advances, and every
// output still holds something a next step may read safely.
#include "advance.cuh"
#include "cluster.cuh"
#include "pack.cuh"

#define THREADS 1024
#define MOST_BLOCKS 8  // of a cluster

struct Best {
    float value;
    int index;
    int finite;
};

static __device__ __forceinline__ Best better(Best a, Best b) {
    bool second = b.value > a.value || (b.value == a.value && b.index < a.index);
    return Best{second ? b.value : a.value, second ? b.index : a.index, a.finite & b.finite};
}

static __device__ __forceinline__ Best nothing() { return Best{__int_as_float(0xff800000), 0x7fffffff, 1}; }

static __device__ __forceinline__ Best best_of_warp(Best best) {
#pragma unroll
    for (int step = 16; step; step >>= 1)
        best = better(best, Best{__shfl_xor_sync(BS_FULL, best.value, step),
                                 __shfl_xor_sync(BS_FULL, best.index, step),
                                 __shfl_xor_sync(BS_FULL, best.finite, step)});
    return best;
}

// Of the values that this thread looks at, where `blocks` share a row and this is block `rank` of them.
template <int N>
static __device__ __forceinline__ Best search(const float *logits, int vocab, int rank, int blocks) {
    Best best = nothing();
    float poison = 0.0f;
#pragma unroll 4
    for (int i = N * (rank * THREADS + threadIdx.x); i < vocab; i += N * THREADS * blocks) {
        Pack<N> v = load<N>(logits + i);
#pragma unroll
        for (int j = 0; j < N; j++) {
            poison = fmaf(v.at[j], 0.0f, poison);
            // a thread meets its values in order: of equals it keeps the first
            if (v.at[j] > best.value) best = Best{v.at[j], i + j, 1};
        }
    }
    best.finite = poison == 0.0f;
    return best;
}

// Of this block, in each thread of its first warp.
static __device__ __forceinline__ Best best_of_block(const float *logits, int vocab, int rank, int blocks) {
    __shared__ Best warps[THREADS / 32];
    Best best = best_of_warp(by_four(vocab) ? search<4>(logits, vocab, rank, blocks)
                                            : search<1>(logits, vocab, rank, blocks));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = best;
    __syncthreads();
    best = threadIdx.x < 32 ? best_of_warp(warps[threadIdx.x]) : nothing();
    __syncthreads();
    return best;
}

// What the blocks of a cluster found together, in the first thread of its first block.
static __device__ __forceinline__ Best best_of_row(const float *logits, int vocab) {
    __shared__ Best blocks[MOST_BLOCKS];
    int rank = cluster_rank();
    Best best = best_of_block(logits, vocab, rank, cluster_size());
    if (threadIdx.x == 0) *of_block(blocks + rank, 0) = best;
    cluster_sync();
    best = nothing();
    for (int i = 0; i < cluster_size(); i++) best = better(best, blocks[i]);
    return best;
}

static __device__ __forceinline__ bool idle_block() { return cluster_size() == 1 && blockIdx.x > 0; }
static __device__ __forceinline__ bool last_word() { return cluster_rank() == 0 && threadIdx.x == 0; }

// Shared memory of a block may be written to once the block has begun.
static __device__ __forceinline__ void start() {
    before_next();
    cluster_sync();
    after_previous();
}

BS_KERNEL(THREADS)
argmax(const float *logits, const int *position, const int *pages, int *next, int *error, int *token, int *at,
       int *to_slot, int *run, int rows, int vocab, int page, int pages_width) {
    start();
    if (idle_block()) return;
    Best best = best_of_row(logits, vocab);
    if (!last_word()) return;
    int advanced = position[rows - 1] + best.finite;
    *next = *token = best.finite ? best.index : 0;
    *error = !best.finite;
    bool inside = place(Advance{next, error, token, at, to_slot}, 0, advanced, pages, page, pages_width);
    if (best.finite && inside) run[advanced] = best.index;
}

// Each row is a sequence, and a block's. The step is one: a bad logit of any row keeps all where they are.
BS_KERNEL(THREADS)
argmax_rows(const float *logits, const int *position, const int *pages, int *next, int *error, int *token,
            int *at, int *to_slot, int rows, int vocab, int page, int pages_width) {
    start();
    if (idle_block()) return;
    __shared__ int finites[MOST_BLOCKS];
    int rank = cluster_rank(), blocks = cluster_size(), finite = 1;
    for (int r = rank; r < rows; r += blocks) {
        Best best = best_of_block(logits + (i64)r * vocab, vocab, 0, 1);
        finite &= best.finite;
        if (threadIdx.x == 0) next[r] = best.index;
    }
    if (threadIdx.x == 0) *of_block(finites + rank, 0) = finite;
    cluster_sync();
    if (!last_word()) return;
    Advance out = {next, error, token, at, to_slot};
    finite = 1;
    for (int i = 0; i < blocks; i++) finite &= finites[i];
    *error = !finite;
    for (int r = 0; r < rows; r++) {
        place(out, r, position[r] + finite, pages + (i64)r * pages_width, page, pages_width);
        next[r] = token[r] = finite ? next[r] : 0;
    }
}
