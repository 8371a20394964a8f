// attention, attention_gate of many rows, keys and values being 64 bfloat16.
#define DEPTH 64
#undef BS_CACHE
#define BS_CACHE bf16
#include "attend_many_wgmma.cuh"
#include "attend_many_entries.cuh"
