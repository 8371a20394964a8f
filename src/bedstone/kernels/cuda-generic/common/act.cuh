// Functions of one value, each step rounded by itself so that no compiler's choice of a fused
// multiply-add tells a fused entry from its parts.
#pragma once
#include "abi.cuh"

static __device__ __forceinline__ float sigmoid(float x) { return __fdiv_rn(1.0f, __fadd_rn(1.0f, expf(-x))); }

// max(x, 0) + log(1 + e^-|x|); the log is NaN where x is, so the maximum need not be.
static __device__ __forceinline__ float softplus(float x) {
    return __fadd_rn(fmaxf(x, 0.0f), log1pf(expf(-fabsf(x))));
}

// x * sigmoid(u).
static __device__ __forceinline__ float sigmoid_times(float x, float u) {
    return __fdiv_rn(x, __fadd_rn(1.0f, expf(-u)));
}

// x / 2 * (1 + tanh u) is x * sigmoid(2 u), which does not cancel where u is far below 0: its 2 u.
static __device__ __forceinline__ float gelu_twice(float x) {
    return __fmul_rn(x, __fmaf_rn(__fmul_rn(x, x), 0.07135481627f, 1.595769122f));
}

static __device__ __forceinline__ float silu(float x) { return sigmoid_times(x, x); }
static __device__ __forceinline__ float gelu_tanh(float x) { return sigmoid_times(x, gelu_twice(x)); }

// The gated unit: act 0 silu, 1 tanh-gelu.
static __device__ __forceinline__ float gated(float gate, float up, int act) {
    return __fmul_rn(sigmoid_times(gate, act ? gelu_twice(gate) : gate), up);
}
