// attention, attention_gate of one row, keys and values being 64 bfloat16.
#define DEPTH 64
#undef BS_CACHE
#define BS_CACHE bf16
#include "attend_one_entries.cuh"
