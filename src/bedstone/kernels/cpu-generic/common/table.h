/* The values of a paged table: float32, or bfloat16 where BS_CACHE is defined. */
#ifndef BS_TABLE_H
#define BS_TABLE_H

#include <vector.h>

#ifdef BS_CACHE

#define BS_NARROW_TABLES 1

typedef uint16_t bs_cell;

static BS_INLINE vf bs_cells_load(const bs_cell *p, int n)
{
    uint16_t padded[VL] = {0};
    if (n == VL) return vf_from_bf16((const uint8_t *)p);
    memcpy(padded, p, (size_t)n * sizeof *p);
    return vf_from_bf16((const uint8_t *)padded);
}

/* To the nearest, ties to even; what is no number stays none. */
static BS_INLINE void bs_cells_store(bs_cell *p, vf v, int n)
{
    typedef uint32_t words __attribute__((vector_size(sizeof(vf))));
    typedef uint16_t halves __attribute__((vector_size(sizeof(vf) / 2)));
    words bits = (words)v, none = (words)(v != v);
    words near = bits + 0x7fff + ((bits >> 16) & 1);
    bits = (near & ~none) | ((bits | 0x400000) & none);
    halves cells = __builtin_convertvector(bits >> 16, halves);
    memcpy(p, &cells, (size_t)n * sizeof *p);
}

#else

#define BS_NARROW_TABLES 0

typedef float bs_cell;

static BS_INLINE vf bs_cells_load(const bs_cell *p, int n) { return vf_load_n(p, n); }
static BS_INLINE void bs_cells_store(bs_cell *p, vf v, int n) { vf_store_n(p, v, n); }

#endif

BS_STATIC void bs_cells_put(const float *x, int count, bs_cell *to)
{
    for (int i = 0; i < count; i += VL) {
        int n = bs_min(VL, count - i);
        bs_cells_store(to + i, vf_load_n(x + i, n), n);
    }
}

#endif
