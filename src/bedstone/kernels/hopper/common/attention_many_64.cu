// attention, attention_gate of many rows, keys and values being 64 bfloat16. A block is ROWS rows of a
// head, those that see most first.
#define DEPTH 64
#define ATTEND_BOUNDS ATTEND_THREADS, 2  // blocks a multiprocessor
#undef BS_CACHE
#define BS_CACHE bf16
#include "attend_many_wgmma.cuh"

#define ATTEND(a, rows) attend_many<DEPTH>(a, (int)(gridDim.x - 1 - blockIdx.x) * ROWS, rows)
#include "attend_paged.cuh"
