// attention, attention_gate of one row, keys and values being 256 bfloat16. A block is a row's heads of one
// group; the blocks of a cluster share their positions.
#undef BS_CACHE
#define BS_CACHE bf16
#include "attend_one.cuh"

#define ATTEND(a, rows) attend_one<256>(a)
#include "attend_paged.cuh"
