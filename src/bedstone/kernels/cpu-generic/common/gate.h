/* The gated unit: act(gate) * up of sums that lie [gate | up]. */
#ifndef BS_GATE_H
#define BS_GATE_H

#include <vector.h>

static BS_INLINE void bs_gate(const float *sums, int n, int act, float *y)
{
    for (int i = 0; i < n; i += VL) {
        int m = bs_min(VL, n - i);
        vf g = vf_load_n(sums + i, m);
        vf_store_n(y + i, (act ? vf_gelu_tanh(g) : vf_silu(g)) * vf_load_n(sums + n + i, m), m);
    }
}

#endif
