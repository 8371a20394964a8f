// attention, attention_gate of many rows, keys and values being 128 bfloat16.
#define DEPTH 128
#undef BS_CACHE
#define BS_CACHE bf16
#include "attend_many.cuh"
#include "attend_many_entries.cuh"
