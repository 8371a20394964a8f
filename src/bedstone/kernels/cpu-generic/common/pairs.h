/* Products of pairs of bfloat16: only a set whose machines multiply them faster than floats has any. */
#ifndef BS_PAIRS_H
#define BS_PAIRS_H

#define BS_PAIR_PRODUCTS 0

#endif
