// Entries of attention: their parameters, and what is made of them. A source says by ATTEND(a, rows) what
// attends.
#pragma once
#include "attention.cuh"

// A table's rows of every group's values; row `blockIdx.x` of `pages` where each row is a sequence.
struct Paging {
    const int *pages;
    int page;
};

static __device__ __forceinline__ Paging paging(const int *pages, int page, int pages_width, int stride) {
    return Paging{pages + (i64)blockIdx.x * stride * pages_width, page};
}

static __device__ __forceinline__ Lines<cache_t> lines_of(const cache_t *x, Paging p, int groups, int width) {
    return Lines<cache_t>{x, p.pages, p.page, (i64)groups * width, width};
}

// Keys and values in tables.
static __device__ __forceinline__ Attention<cache_t> paged(const float *q, const cache_t *k, const cache_t *v,
                                                           const int *position, Paging p, Forms out, int heads,
                                                           int groups, int dk, int dv) {
    Attention<cache_t> a = {};
    a.q = q;
    a.q_own = a.k_own = a.dk = dk;
    a.dv = dv;
    a.k = lines_of(k, p, groups, dk);
    // where a key holds its value they lie as keys do
    a.v = lines_of(v, p, groups, k == v ? dk : dv);
    a.position = position;
    a.out = out;
    a.heads = heads;
    a.groups = groups;
    return a;
}

// Runs f unless other blocks do without: where there are no clusters the first block does it all.
template <class F>
static __device__ __forceinline__ void begin(F f) {
    before_next();
    after_previous();
    if (cluster_size() > 1 || blockIdx.z == 0) f();
}

// Each entry takes seconds to compile: BS_ONLY names the one that a module holds. Without it all are there.
#define BS_ID_attention 1
#define BS_ID_attention_q 2
#define BS_ID_attention_fq 3
#define BS_ID_attention_gate 4
#define BS_ID_attention_gate_q 5
#define BS_ID_attention_gate_fq 6
#define BS_ID_attention_in 7
#define BS_ID_attention_in_q 8
#define BS_ID_attention_in_fq 9
#define BS_ID_attention_in_split 10
#define BS_ID_attention_in_split_q 11
#define BS_ID_attention_in_split_fq 12
#define BS_ID_attention_flat 13
#define BS_ID_attention_flat_q 14
#define BS_ID_attention_flat_fq 15
#define BS_ID_attention_flat_split 16
#define BS_ID_attention_flat_split_q 17
#define BS_ID_attention_flat_split_fq 18
#define BS_ID_attention_turned 19
#define BS_ID_attention_turned_q 20
#define BS_ID_attention_turned_fq 21
#define BS_ID_attention_turned_n 22
#define BS_ID_attention_turned_n_q 23
#define BS_ID_attention_turned_n_fq 24

#define SCORED(a)      \
    a.scale = scale;   \
    a.window = window; \
    a.softcap = softcap

#define SIZES int rows, int heads, int groups, int dk, int dv
#define PAGED int page, int pages_width
#define SCORES float scale, int window, float softcap
#define WHERE const int *position, const int *pages
#define PAGES paging(pages, page, pages_width, stride)
#ifndef ATTEND_BOUNDS
#define ATTEND_BOUNDS ATTEND_THREADS
#endif
#define ATTENTION(name) BS_KERNEL(ATTEND_BOUNDS) name

// Where a result goes, as parameters.
#define F float *y
#define Q code_t *yq
#define FQ float *y, code_t *yq
