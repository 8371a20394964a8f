// attention, attention_gate, attention_turned of one row, keys and values being 64 bfloat16. A block is a
// row's heads of one group; the blocks of a cluster share their positions.
#undef BS_CACHE
#define BS_CACHE bf16
#define DEPTH 64
#define ATTEND_BOUNDS THREADS, BLOCKS
#include "attend_turned.cuh"

#define RUN(a, rows) attend_lots<DEPTH>(a, Given<DEPTH>{})
#include "attend_paged.cuh"
