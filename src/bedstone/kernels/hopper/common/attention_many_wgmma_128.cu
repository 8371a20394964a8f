// attention, attention_gate of many rows, keys and values being 128 bfloat16.
#define DEPTH 128
#define ATTEND_BOUNDS THREADS, 1
#undef BS_CACHE
#define BS_CACHE bf16
#include "attend_many_wgmma.cuh"

#define BS_BESIDE , const __grid_constant__ Tables tables
#define ATTEND(a, rows) attend_many<DEPTH>(a, tables, rows)
#include "attend_paged.cuh"
