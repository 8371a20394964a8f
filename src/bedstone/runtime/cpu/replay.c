/* Replays a list of kernel launches over a persistent pool of threads.
 *
 * A job is a launch list, run `repeat` times. Every thread walks the whole list; the calling thread
 * is thread 0. Each launch with blocks is a *turn*. A turn's blocks are divided into a contiguous
 * share for each thread, which its owner claims a few chunks at a time. A turn is over when all of
 * its blocks have run, and only then does any thread begin the next.
 *
 * No turn waits for a thread, only for blocks: where a thread lost its core to another process, the
 * others claim what is left of its share, and it walks past the turns it missed when it is back.
 * Which thread runs a block decides nothing about the result.
 *
 * A thread looks at the list only while it is marked busy, and marks itself so only while the job is
 * open. Closing a job waits for busy threads, so a list may be changed as soon as bs_replay returns.
 *
 * A thread that begins a launch is told what it will read before long: see ahead.h.
 *
 * Waiting spins for a moment, then sleeps in the kernel. A job with no launch of several blocks
 * never wakes the other threads.
 */

#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "ahead.h"

#define LINE 64

/* After repetition r, `bytes` bytes at `source` are copied to `sink` + r * `bytes`. */
typedef struct {
  const uint8_t *source;
  uint8_t *sink;
  uint64_t bytes;
} bs_tap;

typedef struct {
  const bs_launch *launches;
  uint64_t count;
  uint64_t repeat;
  const bs_tap *taps;
  uint64_t tap_count;
} job;

/* One launch (NULL: the taps of a repetition) at its place in the history of the pool. */
typedef struct {
  const bs_launch *launch;
  uint64_t round;
  uint64_t number; /* turns are numbered from 1 on, through all jobs */
  uint64_t total;
  uint64_t ran_after; /* blocks run through all jobs once this turn is over */
} turn;

/* A counter that threads wait on. */
typedef struct {
  _Alignas(LINE) _Atomic uint32_t value;
  _Atomic uint32_t sleepers;
} gate;

typedef struct bs_pool bs_pool;

typedef struct {
  /* the turn this share was last claimed in, and in its low bits how many chunks of it are taken */
  _Alignas(LINE) _Atomic uint64_t share;
  _Alignas(LINE) _Atomic uint32_t busy;
  bs_pool *pool;
  pthread_t thread;
  uint32_t index;
  int32_t cpu;
  void *shared;
  prospect ahead;
} worker;

struct bs_pool {
  gate job_number; /* odd while a job is open */
  gate turns;      /* turns that are over */
  _Alignas(LINE) _Atomic uint64_t ran;
  job job;
  uint64_t turns_before; /* when the job was opened */
  uint64_t ran_before;
  worker *workers;
  uint64_t shared_bytes;
  uint32_t threads;
  uint32_t spins;
  _Atomic uint32_t stop;
  pid_t pid;
  tellers known;
};

/* Some microseconds before helping: what is taken from a thread that is nearly through comes from its caches. */
enum { CHUNK_BITS = 16, CHUNKS = 16, SPINS_BEFORE_HELPING = 256 };
enum { BS_OK = 0, BS_FORKED = 1, BS_NO_MEMORY = 2 };

static _Thread_local bs_coming *mine;

/* What the calling thread will read before long; NULL outside of a job. */
bs_coming *bs_along(void) { return mine; }

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void gate_open(gate *g) {
  atomic_fetch_add(&g->value, 1);
  if (atomic_load(&g->sleepers)) syscall(SYS_futex, &g->value, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
}

/* Sleep until the gate's value is no longer `seen`. */
static void gate_sleep(gate *g, uint32_t seen) {
  atomic_fetch_add(&g->sleepers, 1);
  while (atomic_load(&g->value) == seen)
    syscall(SYS_futex, &g->value, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
  atomic_fetch_sub(&g->sleepers, 1);
}

/* The gate's value once it is no longer `seen`. */
static uint32_t gate_next(gate *g, uint32_t seen, uint32_t spins) {
  for (uint32_t i = 0; i < spins && atomic_load(&g->value) == seen; i++) relax();
  if (atomic_load(&g->value) == seen) gate_sleep(g, seen);
  return atomic_load(&g->value);
}

/* Whether the turn was over within `spins` looks. */
static int is_over(bs_pool *pool, uint64_t number, uint32_t spins) {
  for (uint32_t i = 0;; i++) {
    uint32_t over = atomic_load_explicit(&pool->turns.value, memory_order_acquire);
    if ((int32_t)(over - (uint32_t)number) >= 0) return 1;
    if (i >= spins) return 0;
    relax();
  }
}

static void await_turn(bs_pool *pool, uint64_t number) {
  while (!is_over(pool, number, pool->spins)) {
    uint32_t over = atomic_load(&pool->turns.value);
    if ((int32_t)(over - (uint32_t)number) < 0) gate_sleep(&pool->turns, over);
  }
}

/* Marks a thread busy if the job is still open. */
static int enter(worker *self, uint32_t job_number) {
  atomic_store(&self->busy, 1);
  if (atomic_load(&self->pool->job_number.value) == job_number) return 1;
  atomic_store(&self->busy, 0);
  return 0;
}

static void leave(worker *self) { atomic_store_explicit(&self->busy, 0, memory_order_release); }

static void run_blocks(const bs_launch *l, uint64_t from, uint64_t to, void *shared) {
  if (from == to) return;
  const bs_dim3 grid = {(uint32_t)l->x, (uint32_t)l->y, (uint32_t)l->z};
  bs_dim3 at = {(uint32_t)(from % l->x), (uint32_t)(from / l->x % l->y),
                (uint32_t)(from / l->x / l->y)};
  for (uint64_t i = from; i < to; i++) {
    l->entry(l->args, &at, &grid, shared);
    if (++at.x == grid.x) {
      at.x = 0;
      if (++at.y == grid.y) {
        at.y = 0;
        at.z++;
      }
    }
  }
}

/* A caller may have changed rounding or denormal handling; results must not depend on it. */
static uint32_t float_mode_default(void) {
#if defined(__x86_64__)
  uint32_t before = _mm_getcsr();
  _mm_setcsr(0x1f80);
  return before;
#else
  return 0;
#endif
}

static void float_mode_restore(uint32_t before) {
#if defined(__x86_64__)
  _mm_setcsr(before);
#else
  (void)before;
#endif
}

static void tap_all(const job *j, uint64_t round) {
  for (uint64_t i = 0; i < j->tap_count; i++)
    memcpy(j->taps[i].sink + round * j->taps[i].bytes, j->taps[i].source, j->taps[i].bytes);
}

/* Claims the next chunk of a thread's share of a turn; the number of blocks, from `*from` on. */
static uint64_t claim(const bs_pool *pool, uint32_t owner, const turn *t, uint64_t *from) {
  uint64_t first = share_begins(t->total, (one_of){owner, pool->threads});
  uint64_t size = share_begins(t->total, (one_of){owner + 1, pool->threads}) - first;
  uint64_t chunk_size = (size + CHUNKS - 1) / CHUNKS;
  _Atomic uint64_t *share = &pool->workers[owner].share;
  uint64_t seen = atomic_load(share);
  for (;;) {
    uint64_t last = seen >> CHUNK_BITS;
    uint64_t chunk = last == t->number ? seen & ((1u << CHUNK_BITS) - 1) : 0;
    uint64_t start = chunk * chunk_size;
    if (last > t->number || start >= size) return 0;
    if (atomic_compare_exchange_weak(share, &seen, t->number << CHUNK_BITS | (chunk + 1))) {
      *from = first + start;
      return size - start < chunk_size ? size - start : chunk_size;
    }
  }
}

/* Runs what is left of a thread's share; whether there was any. */
static int run_share(worker *self, uint32_t owner, const turn *t) {
  bs_pool *pool = self->pool;
  uint64_t from, count, ran = 0;
  while ((count = claim(pool, owner, t, &from)) > 0) {
    if (t->launch == NULL)
      tap_all(&pool->job, t->round);
    else
      run_blocks(t->launch, from, from + count, self->shared);
    ran += count;
  }
  if (ran > 0 && atomic_fetch_add(&pool->ran, ran) + ran == t->ran_after) gate_open(&pool->turns);
  return ran > 0;
}

/* Runs what is left of the other threads' shares; whether there was any. */
static int help(worker *self, const turn *t) {
  int helped = 0;
  for (uint32_t i = 1; i < self->pool->threads; i++)
    helped |= run_share(self, (self->index + i) % self->pool->threads, t);
  return helped;
}

/* Sees a turn through to its end, helping where others lag; whether the job is still open. */
static int finish_turn(worker *self, uint32_t job_number, const turn *t) {
  while (!is_over(self->pool, t->number, SPINS_BEFORE_HELPING)) {
    if (!enter(self, job_number)) return 0;
    int helped = help(self, t);
    leave(self);
    if (!helped) {
      await_turn(self->pool, t->number);
      return 1;
    }
  }
  return 1;
}

/* Walks the list of the open job; the last turn seen. */
static turn walk(worker *self, uint32_t job_number) {
  bs_pool *pool = self->pool;
  turn t = {0};
  if (!enter(self, job_number)) return t;
  const job j = pool->job;
  t.number = pool->turns_before;
  t.ran_after = pool->ran_before;
  const one_of who = {self->index, pool->threads};
  leave(self);
  for (t.round = 0; t.round < j.repeat; t.round++) {
    look_nowhere(&self->ahead);
    for (uint64_t i = 0; i <= j.count; i++) {
      if (!enter(self, job_number)) return t;
      t.launch = i < j.count ? &j.launches[i] : NULL;
      t.total = t.launch ? blocks(t.launch) : j.tap_count > 0;
      if (t.total > 0) {
        t.number++;
        t.ran_after += t.total;
        if (t.launch) look_ahead(&self->ahead, &pool->known, who, t.launch, j.count - i);
        run_share(self, self->index, &t);
      }
      leave(self);
      if (t.total > 0 && !finish_turn(self, job_number, &t)) return t;
    }
  }
  return t;
}

/* Ends the job: from here on no thread looks at its list. */
static void close_job(bs_pool *pool) {
  atomic_fetch_add(&pool->job_number.value, 1);
  for (uint32_t i = 1; i < pool->threads; i++)
    for (uint32_t spins = 0; atomic_load(&pool->workers[i].busy); spins++)
      if (spins < pool->spins)
        relax();
      else
        sched_yield();
}

static void run_shared(bs_pool *pool) {
  gate_open(&pool->job_number);
  turn last = walk(&pool->workers[0], atomic_load(&pool->job_number.value));
  close_job(pool);
  pool->turns_before = last.number;
  pool->ran_before = last.ran_after;
}

static void run_alone(bs_pool *pool) {
  const job *j = &pool->job;
  prospect *ahead = &pool->workers[0].ahead;
  for (uint64_t round = 0; round < j->repeat; round++) {
    look_nowhere(ahead);
    for (uint64_t i = 0; i < j->count; i++) {
      look_ahead(ahead, &pool->known, (one_of){0, 1}, &j->launches[i], j->count - i);
      run_blocks(&j->launches[i], 0, blocks(&j->launches[i]), pool->workers[0].shared);
    }
    tap_all(j, round);
  }
}

static int is_shared(const bs_pool *pool) {
  if (pool->threads == 1) return 0;
  for (uint64_t i = 0; i < pool->job.count; i++)
    if (blocks(&pool->job.launches[i]) > 1) return 1;
  return 0;
}

static void *work(void *argument) {
  worker *self = argument;
  bs_pool *pool = self->pool;
  uint32_t number = 0;
  float_mode_default();
  mine = &self->ahead.coming;
  for (;;) {
    number = gate_next(&pool->job_number, number, pool->spins);
    if (atomic_load(&pool->stop)) return NULL;
    if (number % 2) walk(self, number);
  }
}

int bs_replay(bs_pool *pool, const bs_launch *launches, uint64_t count, uint64_t repeat,
              const bs_tap *taps, uint64_t tap_count) {
  if (pool->pid != getpid()) return BS_FORKED;
  uint32_t mode = float_mode_default();
  mine = &pool->workers[0].ahead.coming;
  pool->job = (job){launches, count, repeat, taps, tap_count};
  if (is_shared(pool))
    run_shared(pool);
  else
    run_alone(pool);
  mine = NULL;
  float_mode_restore(mode);
  return BS_OK;
}

/* Has `reads` tell what `entry` reads; not while a job runs. */
void bs_pool_ask(bs_pool *pool, bs_kernel *entry, bs_reads *reads) {
  add_teller(&pool->known, entry, reads);
}

/* Gives every thread at least `bytes` bytes of shared memory; not while a job runs. */
int bs_pool_reserve(bs_pool *pool, uint64_t bytes) {
  if (bytes <= pool->shared_bytes) return BS_OK;
  uint64_t rounded = (bytes + LINE - 1) / LINE * LINE;
  for (uint32_t i = 0; i < pool->threads; i++) {
    void *shared = aligned_alloc(LINE, rounded);
    if (shared == NULL) return BS_NO_MEMORY;
    free(pool->workers[i].shared);
    pool->workers[i].shared = shared;
  }
  pool->shared_bytes = rounded;
  return BS_OK;
}

static int start(worker *self) {
  sigset_t all, before;
  sigfillset(&all);
  /* signals belong to the thread that runs the interpreter */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&self->thread, NULL, work, self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!failed && self->cpu >= 0) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(self->cpu, &only);
    /* a core that went away since it was chosen leaves the thread unpinned, which is still right */
    pthread_setaffinity_np(self->thread, sizeof only, &only);
  }
  return failed;
}

void bs_pool_close(bs_pool *pool) {
  if (pool->pid == getpid()) {
    atomic_store(&pool->stop, 1);
    gate_open(&pool->job_number);
    for (uint32_t i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].thread, NULL);
  }
  for (uint32_t i = 0; i < pool->threads; i++) free(pool->workers[i].shared);
  free(pool->workers);
  free(pool);
}

/* A pool of `threads` threads; thread i > 0 is pinned to cpus[i] where that is not negative. */
bs_pool *bs_pool_open(uint32_t threads, const int32_t *cpus, uint32_t spins) {
  bs_pool *pool = aligned_alloc(LINE, sizeof *pool);
  worker *workers = aligned_alloc(LINE, threads * sizeof *workers);
  if (pool == NULL || workers == NULL) {
    free(pool);
    free(workers);
    return NULL;
  }
  memset(pool, 0, sizeof *pool);
  memset(workers, 0, threads * sizeof *workers);
  workers[0].pool = pool;
  pool->workers = workers;
  pool->threads = 1;
  pool->spins = spins;
  pool->pid = getpid();
  for (uint32_t i = 1; i < threads; i++) {
    workers[i] = (worker){.pool = pool, .index = i, .cpu = cpus[i]};
    if (start(&workers[i])) {
      bs_pool_close(pool);
      return NULL;
    }
    pool->threads = i + 1;
  }
  return pool;
}
