/* Where a step leaves its sequences, for the next one to go on from. */
#ifndef BS_ADVANCE_H
#define BS_ADVANCE_H

#include <abi.h>

/* Where a sequence at `here` goes on: `advanced`, or its last position where there is none behind. */
typedef struct {
    int position, slot, inside;
} next_place;

BS_STATIC next_place place_of(int advanced, const int32_t *pages, int page, int pages_width)
{
    int capacity = page * pages_width, inside = advanced < capacity;
    /* past the last position the next step would write nothing and read the last one */
    if (!inside) return (next_place){capacity - 1, -1, 0};
    return (next_place){advanced, pages[advanced / page] * page + advanced % page, 1};
}

#endif
