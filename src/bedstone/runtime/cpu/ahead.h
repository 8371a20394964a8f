/* What a thread will read before long: memory that launches to come read is sent for while others compute.
 *
 * An entry may have a function that tells what some of its blocks read. A thread that begins a launch asks the next
 * one that tells, within a few launches, about its own share of blocks. What it is told is a hint: kernels that
 * have time send for it, and nothing depends on it.
 */
#ifndef BS_AHEAD_H
#define BS_AHEAD_H

#include <stddef.h>

#include "launch.h"

/* As the kernels' abi.h has them. */
typedef struct {
  const uint8_t *at, *end;
} bs_range;

typedef struct {
  bs_range now;
  const bs_range *next, *last;
} bs_coming;

/* Writes down what blocks [from, to) of `blocks` read, `most` ranges at most; how many there are. */
typedef int32_t bs_reads(const bs_arg *args, uint64_t from, uint64_t to, uint64_t blocks,
                         bs_range *out, int32_t most);

enum { TELLERS = 32, RANGES = 512 };
enum { HORIZON = 8 }; /* in launches: what is sent for earlier would be pushed out again */

/* Entries that tell what they read. Those past the last are not asked. */
typedef struct {
  uint32_t count;
  struct {
    bs_kernel *entry;
    bs_reads *reads;
  } all[TELLERS];
} tellers;

/* What one thread looks out for: what it reads of launch `of`, while any is. */
typedef struct {
  const bs_launch *of;
  bs_coming coming;
  bs_range ranges[RANGES];
} prospect;

/* Thread `index` of `threads`. */
typedef struct {
  uint64_t index, threads;
} one_of;

static bs_reads *reads_of(const tellers *known, bs_kernel *entry) {
  for (uint32_t i = 0; i < known->count; i++)
    if (known->all[i].entry == entry) return known->all[i].reads;
  return NULL;
}

static void add_teller(tellers *known, bs_kernel *entry, bs_reads *reads) {
  if (reads_of(known, entry) != NULL || known->count == TELLERS) return;
  known->all[known->count].entry = entry;
  known->all[known->count++].reads = reads;
}

static void look_nowhere(prospect *p) {
  p->of = NULL;
  p->coming = (bs_coming){{NULL, NULL}, NULL, NULL};
}

/* The first of a thread's share of blocks; that of the thread behind it begins where it ends. */
static uint64_t share_begins(uint64_t total, one_of who) {
  uint64_t each = total / who.threads, rest = total % who.threads;
  return each * who.index + (who.index < rest ? who.index : rest);
}

static void look_at(prospect *p, const bs_launch *l, one_of who, bs_reads *reads) {
  uint64_t total = blocks(l), from = share_begins(total, who);
  uint64_t to = share_begins(total, (one_of){who.index + 1, who.threads});
  int32_t count = reads(l->args, from, to, total, p->ranges, RANGES);
  p->of = l;
  p->coming = (bs_coming){{NULL, NULL}, p->ranges, p->ranges + count};
}

/* Where launch `l` begins, with which `count` are left: unless one behind it is looked at already, the next. */
static void look_ahead(prospect *p, const tellers *known, one_of who, const bs_launch *l,
                       uint64_t count) {
  if (known->count == 0 || p->of > l) return;
  look_nowhere(p);
  for (uint64_t i = 1; i < count && i <= HORIZON; i++) {
    bs_reads *reads = reads_of(known, l[i].entry);
    if (reads != NULL && blocks(l + i) > 0) {
      look_at(p, l + i, who, reads);
      return;
    }
  }
}

#endif
