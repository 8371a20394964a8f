// attention, attention_gate of many rows, keys and values being 256 bfloat16.
#define DEPTH 256
#undef BS_CACHE
#define BS_CACHE bf16
#include "attend_many.cuh"
#include "attend_many_entries.cuh"
