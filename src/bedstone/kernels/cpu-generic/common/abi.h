/* How the runtime calls a kernel: once per grid block, with an argument vector and scratch.
 *
 * An entry exports a string beside itself that states its parameter types; the loader compares it
 * with the manifest's. Entries read their arguments in order through a cursor.
 */
#ifndef BS_ABI_H
#define BS_ABI_H

#include <stddef.h>
#include <stdint.h>

#include <needs.h>

typedef union {
    void *ptr;
    int32_t i32;
    int64_t i64;
    float f32;
    uint8_t u8;
    uint64_t word;
} bs_arg;

typedef struct {
    uint32_t x, y, z;
} bs_dim3;

#define BS_EXPORT __attribute__((visibility("default")))
#define BS_INLINE inline __attribute__((always_inline, unused))
#define BS_STATIC static __attribute__((unused))

#define BS_KERNEL(entry, types) BS_KERNEL_NAMED(entry, types)
#define BS_KERNEL_NAMED(entry, types)                                                    \
    BS_EXPORT const char bs_abi_##entry[] = types;                                       \
    BS_EXPORT void entry(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid,  \
                         void *shared);                                                  \
    void entry(const bs_arg *args, const bs_dim3 *block, const bs_dim3 *grid, void *shared)

/* Memory from `at` to `end`. */
typedef struct {
    const uint8_t *at, *end;
} bs_range;

/* What the thread at hand will read before long: the rest of a range, then those from `next` to `last`. */
typedef struct {
    bs_range now;
    const bs_range *next, *last;
} bs_coming;

/* A module whose entries compute longer than they read may send for a few lines now and then of what entries of
   launches behind theirs read. Whoever loads it fills this in; where it is null, or gives null, nothing comes. */
#define BS_ALONG                                 \
    BS_EXPORT extern bs_coming *(*bs_along)(void); \
    bs_coming *(*bs_along)(void);

/* An entry that reads much, where it is long known what, may have a function that tells: blocks [from, to) of `blocks`
   read so many ranges, `most` at most. It is called while launches before the entry's run: what these write may be
   anything yet, and may change meanwhile. */
#define BS_READS(entry) BS_READS_NAMED(entry)
#define BS_READS_NAMED(entry)                                                                         \
    BS_EXPORT int32_t bs_reads_##entry(const bs_arg *args, uint64_t from, uint64_t to, uint64_t blocks, \
                                       bs_range *out, int32_t most);                                    \
    int32_t bs_reads_##entry(const bs_arg *args, uint64_t from, uint64_t to, uint64_t blocks, bs_range *out, \
                             int32_t most)

/* How many threads run the blocks of a module, where whoever loads it says so; else 0. It may decide how blocks share
   work, but no bit of a result. A source that asks defines it so: */
#define BS_THREADS                     \
    BS_EXPORT extern int32_t bs_threads; \
    int32_t bs_threads;

/* Most entries need only some of what they are called with. */
#define BS_UNUSED(name) ((void)(name))

typedef const bs_arg *bs_cursor;

static BS_INLINE void *bs_ptr(bs_cursor *at) { return (*at)++->ptr; }
static BS_INLINE int bs_i32(bs_cursor *at) { return (*at)++->i32; }
static BS_INLINE float bs_f32(bs_cursor *at) { return (*at)++->f32; }

static BS_INLINE int bs_min(int a, int b) { return a < b ? a : b; }
static BS_INLINE int bs_max(int a, int b) { return a > b ? a : b; }
static BS_INLINE int bs_ceil_div(int a, int b) { return (a + b - 1) / b; }

#endif
