// rope_table: cos and sin of position * frequency, for up to 256 frequencies; a block is 64 positions.
//
// Angles are float64 products of the float32 frequencies and evaluated in float64: at positions in
// the thousands a float32 angle has already lost three digits.
#include "abi.cuh"

#define POSITIONS 64
#define MOST_PAIRS 256

struct Frequencies {
    float at[MOST_PAIRS];
};

BS_KERNEL(256)
rope_table(const __grid_constant__ Frequencies freqs, float *cos, float *sin, int capacity, int half,
           float factor) {
    before_next();
    after_previous();
    int first = POSITIONS * blockIdx.x, positions = min(POSITIONS, capacity - first);
    for (int i = threadIdx.x; i < positions * half; i += 256) {
        int position = first + i / half;
        double c, s;
        sincos((double)position * (double)freqs.at[i % half], &s, &c);
        i64 at = (i64)position * half + i % half;
        cos[at] = (float)(c * (double)factor);
        sin[at] = (float)(s * (double)factor);
    }
}
