// The families of a mixture's entries, of which a module may hold one alone.
#pragma once
#include "abi.cuh"

#define BS_ID_xlinear 1
#define BS_ID_xglu 2
#define BS_ID_xglu_s 3
#define BS_ID_xglu_sg 4
#define BS_ID_xdown 5
#define BS_ID_xdown_s 6
#define BS_ID_xdown_sg 7

#define BS_SPREAD(...) __VA_ARGS__
#define BS_SIZES int rows, int chosen, int k, int n

// FAMILY(ending, outputs, where they go, those of a shared network, where they go) of each form.
#define BS_EACH_FORM(FAMILY)                                                        \
    FAMILY(, (float *y), (y, nullptr), (float *z), (z, nullptr))                    \
    FAMILY(_q, (code_t *yq), (nullptr, yq), (code_t *zq), (nullptr, zq))            \
    FAMILY(_fq, (float *y, code_t *yq), (y, yq), (float *z, code_t *zq), (z, zq))
