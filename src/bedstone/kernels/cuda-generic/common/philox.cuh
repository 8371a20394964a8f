// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, 2011): random bits that a counter and a key decide.
#pragma once
#include "abi.cuh"

static __device__ __forceinline__ uint4 philox(uint4 c, u32 low, u32 high) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u32 odd = __umulhi(0xCD9E8D57u, c.z), even = __umulhi(0xD2511F53u, c.x);
        c = make_uint4(odd ^ c.y ^ low, 0xCD9E8D57u * c.z, even ^ c.w ^ high, 0xD2511F53u * c.x);
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    return c;
}

// 64 bits that a seed and a position decide: the first two words, the second of them higher.
static __device__ __forceinline__ u64 random_bits(u64 seed, u32 position) {
    uint4 drawn = philox(make_uint4(position, 0, 0, 0), (u32)seed, (u32)(seed >> 32));
    return (u64)drawn.y << 32 | drawn.x;
}
