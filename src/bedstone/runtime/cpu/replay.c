/* Replays a list of kernel launches over a persistent pool of threads.
 *
 * A job is a launch list, run `repeat` times. Every thread walks the whole list and runs its own
 * contiguous share of each launch's grid blocks; the calling thread is thread 0. Launches of one
 * block run on thread 0. Between two launches there is a barrier, left out only where both run on
 * thread 0: program order already holds there. Every thread takes these decisions from the list
 * alone, so all of them meet at the same barriers. A job with no launch wide enough to share never
 * wakes the others.
 *
 * Waiting spins for a moment, then sleeps in the kernel, so a thread that lost its core to another
 * process costs the rest a sleep and not their cores.
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

#define LINE 64

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

typedef void bs_kernel(const bs_arg *args, const bs_dim3 *block_index, const bs_dim3 *grid,
                       void *shared);

/* One launch: seven words, laid out by bedstone.runtime.image. */
typedef struct {
  bs_kernel *entry;
  const bs_arg *args;
  uint64_t x, y, z;
  uint64_t shared;
  uint64_t active;
} bs_launch;

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

/* A counter that threads wait on. */
typedef struct {
  _Alignas(LINE) _Atomic uint32_t value;
  _Atomic uint32_t sleepers;
} gate;

typedef struct bs_pool bs_pool;

typedef struct {
  bs_pool *pool;
  pthread_t thread;
  uint32_t index;
  int32_t cpu;
  void *shared;
} worker;

struct bs_pool {
  gate posted;
  gate epoch;
  _Alignas(LINE) _Atomic uint32_t arrived;
  job job;
  worker *workers;
  uint64_t shared_bytes;
  uint32_t threads;
  uint32_t spins;
  uint32_t stop;
  pid_t pid;
};

enum { BS_OK = 0, BS_FORKED = 1, BS_NO_MEMORY = 2 };

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

static void gate_pass(gate *g, uint32_t seen, uint32_t spins) {
  for (uint32_t i = 0; i < spins; i++) {
    if (atomic_load_explicit(&g->value, memory_order_acquire) != seen) return;
    relax();
  }
  atomic_fetch_add(&g->sleepers, 1);
  while (atomic_load(&g->value) == seen)
    syscall(SYS_futex, &g->value, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
  atomic_fetch_sub(&g->sleepers, 1);
}

static void barrier(bs_pool *pool) {
  uint32_t seen = atomic_load(&pool->epoch.value);
  if (atomic_fetch_add(&pool->arrived, 1) + 1 == pool->threads) {
    atomic_store(&pool->arrived, 0);
    gate_open(&pool->epoch);
  } else {
    gate_pass(&pool->epoch, seen, pool->spins);
  }
}

static uint64_t blocks(const bs_launch *l) { return l->active ? l->x * l->y * l->z : 0; }

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

static void run_share(const bs_launch *l, uint64_t total, uint32_t index, uint32_t threads,
                      void *shared) {
  uint64_t each = total / threads, rest = total % threads;
  uint64_t from = each * index + (index < rest ? index : rest);
  run_blocks(l, from, from + each + (index < rest), shared);
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

/* What was last run and not yet seen by every thread. */
typedef enum { NOTHING, NARROW, WIDE } pending;

static pending run_launch(bs_pool *pool, const bs_launch *l, uint32_t index, pending before) {
  uint64_t total = blocks(l);
  if (total == 0) return before;
  if (total == 1) {
    if (before == WIDE) barrier(pool);
    if (index == 0) run_blocks(l, 0, 1, pool->workers[0].shared);
    return NARROW;
  }
  if (before != NOTHING) barrier(pool);
  run_share(l, total, index, pool->threads, pool->workers[index].shared);
  return WIDE;
}

static void run_shared(bs_pool *pool, uint32_t index) {
  const job *j = &pool->job;
  uint32_t mode = float_mode_default();
  pending before = NOTHING;
  for (uint64_t round = 0; round < j->repeat; round++) {
    for (uint64_t i = 0; i < j->count; i++)
      before = run_launch(pool, &j->launches[i], index, before);
    if (j->tap_count == 0) continue;
    if (before == WIDE) barrier(pool);
    if (index == 0) tap_all(j, round);
    before = NARROW;
  }
  /* the last one: after it no thread but the caller looks at the job again */
  barrier(pool);
  float_mode_restore(mode);
}

static void run_alone(bs_pool *pool) {
  const job *j = &pool->job;
  uint32_t mode = float_mode_default();
  for (uint64_t round = 0; round < j->repeat; round++) {
    for (uint64_t i = 0; i < j->count; i++)
      run_blocks(&j->launches[i], 0, blocks(&j->launches[i]), pool->workers[0].shared);
    tap_all(j, round);
  }
  float_mode_restore(mode);
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
  uint32_t seen = 0;
  for (;;) {
    gate_pass(&pool->posted, seen, pool->spins);
    seen++;
    if (pool->stop) return NULL;
    run_shared(pool, self->index);
  }
}

int bs_replay(bs_pool *pool, const bs_launch *launches, uint64_t count, uint64_t repeat,
              const bs_tap *taps, uint64_t tap_count) {
  if (pool->pid != getpid()) return BS_FORKED;
  pool->job = (job){launches, count, repeat, taps, tap_count};
  if (is_shared(pool)) {
    gate_open(&pool->posted);
    run_shared(pool, 0);
  } else {
    run_alone(pool);
  }
  return BS_OK;
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
    pool->stop = 1;
    gate_open(&pool->posted);
    for (uint32_t i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].thread, NULL);
  }
  for (uint32_t i = 0; i < pool->threads; i++) free(pool->workers[i].shared);
  free(pool->workers);
  free(pool);
}

/* A pool of `threads` threads; thread i > 0 is pinned to cpus[i] where that is not negative. */
bs_pool *bs_pool_open(uint32_t threads, const int32_t *cpus, uint32_t spins) {
  bs_pool *pool = aligned_alloc(LINE, (sizeof *pool + LINE - 1) / LINE * LINE);
  worker *workers = calloc(threads, sizeof *workers);
  if (pool == NULL || workers == NULL) {
    free(pool);
    free(workers);
    return NULL;
  }
  memset(pool, 0, sizeof *pool);
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
