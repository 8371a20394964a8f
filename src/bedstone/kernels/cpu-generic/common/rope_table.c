/* rope_table: cos and sin of position * frequency, for up to 256 frequencies; a block is 64 positions.
 *
 * Angles are float64 products of the float32 frequencies, reduced and evaluated in float64: at
 * positions in the thousands a float32 angle has already lost three digits.
 */
#include <abi.h>

#define POSITIONS 64

/* pi / 2 in three pieces; a turn count below 2^20 times the first two is exact. */
#define HALF_PI_HIGH 0x1.921fb544p+0
#define HALF_PI_MIDDLE 0x1.0b4611a6p-34
#define HALF_PI_LOW 0x1.3198a2e037073p-69

/* sin r and cos r of |r| <= pi / 4 by their Taylor series, the last term below 2^-56. */
static double sine(double r)
{
    double z = r * r, p = -1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return r + r * z * p;
}

static double cosine(double r)
{
    double z = r * r, p = 1.0 / 20922789888000.0;
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    p = p * z - 0.5;
    return 1.0 + z * p;
}

static void cos_sin(double angle, double *c, double *s)
{
    int64_t turns = (int64_t)(angle * 0.63661977236758134308 + 0.5);
    double n = (double)turns;
    double r = ((angle - n * HALF_PI_HIGH) - n * HALF_PI_MIDDLE) - n * HALF_PI_LOW;
    double even = turns & 1 ? sine(r) : cosine(r), odd = turns & 1 ? cosine(r) : sine(r);
    *c = ((turns + 1) & 2) ? -even : even;
    *s = (turns & 2) ? -odd : odd;
}

BS_KERNEL(rope_table, "bytes<1024>, out buffer<f32>, out buffer<f32>, i32, i32, f32")
{
    BS_UNUSED(grid);
    BS_UNUSED(shared);
    bs_cursor at = args;
    const float *freqs = bs_ptr(&at);
    float *cos = bs_ptr(&at), *sin = bs_ptr(&at);
    int capacity = bs_i32(&at), half = bs_i32(&at);
    double factor = bs_f32(&at);
    int first = POSITIONS * (int)block->x, last = bs_min(first + POSITIONS, capacity);
    for (int position = first; position < last; position++)
        for (int i = 0; i < half; i++) {
            double c, s;
            cos_sin((double)position * (double)freqs[i], &c, &s);
            cos[(size_t)position * (size_t)half + (size_t)i] = (float)(c * factor);
            sin[(size_t)position * (size_t)half + (size_t)i] = (float)(s * factor);
        }
}
