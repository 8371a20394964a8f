/* Windows into the rows of a wider tensor, read unit by unit; and columns of a table's rows. */
#ifndef BS_PART_H
#define BS_PART_H

#include <stddef.h>

#include <table.h>

/* Value i of row r lies at r * row + i / width * unit + i % width. */
typedef struct {
    int row, unit, width;
} bs_window;

static BS_INLINE bs_window bs_window_in(bs_cursor *at)
{
    bs_window window;
    window.row = bs_i32(at);
    window.unit = bs_i32(at);
    window.width = bs_i32(at);
    return window;
}

static BS_INLINE size_t bs_window_at(bs_window window, size_t row, int i)
{
    return row * (size_t)window.row + (size_t)(i / window.width) * (size_t)window.unit
           + (size_t)(i % window.width);
}

/* How many of the values [i, end) lie side by side. */
static BS_INLINE int bs_window_run(bs_window window, int i, int end)
{
    return bs_min(window.width - i % window.width, end - i);
}

BS_STATIC void bs_window_copy(const float *x, bs_window window, size_t row, int from, int count, float *y)
{
    for (int i = from, end = from + count; i < end;) {
        int run = bs_window_run(window, i, end);
        memcpy(y + (i - from), x + bs_window_at(window, row, i), (size_t)run * sizeof(float));
        i += run;
    }
}

/* Values [from, from + count) of a row: where they lie, or laid into `dense` where they lie apart. */
BS_STATIC const float *bs_window_values(const float *x, bs_window window, size_t row, int from,
                                        int count, float *dense)
{
    if (bs_window_run(window, from, from + count) == count) return x + bs_window_at(window, row, from);
    bs_window_copy(x, window, row, from, count, dense);
    return dense;
}

/* Where the rows of a result go: a buffer, whole rows of a table, or some columns of them. */
typedef struct {
    void *y;             /* floats, or a table's cells */
    const int32_t *slot; /* of a table: the row each goes to, negative where it goes nowhere */
    int pitch, column;
} bs_place;

/* The first value of a row's place; negative where it goes nowhere. */
static BS_INLINE ptrdiff_t bs_place_of(const bs_place *place, size_t row)
{
    ptrdiff_t to = place->slot ? place->slot[row] : (ptrdiff_t)row;
    return to < 0 ? -1 : to * place->pitch + place->column;
}

/* Where values from `at` on are made that are to lie there: in `laid` if that is no place for floats. */
static BS_INLINE float *bs_place_make(const bs_place *place, ptrdiff_t at, float *laid)
{
    return BS_NARROW_TABLES && place->slot ? laid : (float *)place->y + at;
}

/* Puts `count` values that were made for `at`. */
static BS_INLINE void bs_place_put(const bs_place *place, ptrdiff_t at, const float *made, int count)
{
    if (BS_NARROW_TABLES && place->slot) bs_cells_put(made, count, (bs_cell *)place->y + at);
}

#endif
