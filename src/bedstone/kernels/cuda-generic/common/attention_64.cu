// attention, attention_gate of one row, keys and values being 64 bfloat16. A block is a row's heads of one
// group; the blocks of a cluster share their positions.
#undef BS_CACHE
#define BS_CACHE bf16
#include "attend_one.cuh"

#define ATTEND(a, rows) attend_one<64>(a)
#include "attend_paged.cuh"
