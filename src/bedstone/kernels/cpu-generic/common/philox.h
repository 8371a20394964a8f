/* Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, 2011): random bits that a counter and a key decide. */
#ifndef BS_PHILOX_H
#define BS_PHILOX_H

#include <abi.h>

typedef struct {
    uint32_t word[4];
} philox_block;

BS_STATIC philox_block philox(philox_block counter, uint32_t low, uint32_t high)
{
    uint32_t *c = counter.word;
    for (int round = 0; round < 10; round++) {
        uint64_t even = (uint64_t)c[0] * 0xD2511F53u, odd = (uint64_t)c[2] * 0xCD9E8D57u;
        c[0] = (uint32_t)(odd >> 32) ^ c[1] ^ low;
        c[1] = (uint32_t)odd;
        c[2] = (uint32_t)(even >> 32) ^ c[3] ^ high;
        c[3] = (uint32_t)even;
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    return counter;
}

/* 64 bits that a seed and a position decide: the first two words, the second of them higher. */
BS_STATIC uint64_t random_bits(uint64_t seed, uint32_t position)
{
    philox_block drawn = philox((philox_block){{position, 0, 0, 0}}, (uint32_t)seed, (uint32_t)(seed >> 32));
    return (uint64_t)drawn.word[1] << 32 | drawn.word[0];
}

#endif
