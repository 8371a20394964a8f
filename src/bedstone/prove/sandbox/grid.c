/* Runs every block of a launch on the calling thread: a kernel alone, without a pool's scheduling. */
#include <stdint.h>

typedef struct {
    uint32_t x, y, z;
} bs_dim3;

typedef void entry(const void *args, const bs_dim3 *block, const bs_dim3 *grid, void *shared);

__attribute__((visibility("default"))) void bs_run_grid(entry *kernel, const void *args,
                                                        const bs_dim3 *grid, void *shared)
{
    bs_dim3 block;
    for (block.z = 0; block.z < grid->z; block.z++)
        for (block.y = 0; block.y < grid->y; block.y++)
            for (block.x = 0; block.x < grid->x; block.x++) kernel(args, &block, grid, shared);
}
