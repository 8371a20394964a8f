/* How a panel of codes meets many rows of activations: by vectors, unless a set has a better way. */
#ifndef BS_CODE_ROWS_H
#define BS_CODE_ROWS_H

#include <code_tiles.h>

#define bs_by_tiles(rows) 0
#define bs_rows_lay bs_span_lay
#define bs_code_rows bs_vector_rows

#endif
