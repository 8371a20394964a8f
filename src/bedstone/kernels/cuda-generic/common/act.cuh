// Functions of one value, each step rounded by itself so that no compiler's choice of a fused
// multiply-add tells a fused entry from its parts.
#pragma once
#include "abi.cuh"

static __device__ __forceinline__ float sigmoid(float x) { return __fdiv_rn(1.0f, __fadd_rn(1.0f, expf(-x))); }
static __device__ __forceinline__ float silu(float x) { return __fdiv_rn(x, __fadd_rn(1.0f, expf(-x))); }

// max(x, 0) + log(1 + e^-|x|); the log is NaN where x is, so the maximum need not be.
static __device__ __forceinline__ float softplus(float x) {
    return __fadd_rn(fmaxf(x, 0.0f), log1pf(expf(-fabsf(x))));
}

// x / 2 * (1 + tanh u) written as x * sigmoid(2 u), which does not cancel where u is far below 0.
static __device__ __forceinline__ float gelu_tanh(float x) {
    float square = __fmul_rn(x, x);
    float twice = __fmul_rn(x, __fmaf_rn(square, 0.07135481627f, 1.595769122f));
    return __fdiv_rn(x, __fadd_rn(1.0f, expf(-twice)));
}

// The gated unit: act 0 silu, 1 tanh-gelu.
static __device__ __forceinline__ float gated(float gate, float up, int act) {
    return __fmul_rn(act ? gelu_tanh(gate) : silu(gate), up);
}
