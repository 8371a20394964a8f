/* A kernel of the tests: an entry as the runtime calls it, and its parameter types. */

#include "launch.h"

#define BS_KERNEL(entry, types)        \
  const char bs_abi_##entry[] = types; \
  void entry(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid, void *shared)

#define UNUSED (void)block, (void)grid, (void)shared
