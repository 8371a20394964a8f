/* Random launch lists through a pool; each list is freed as soon as its replay returns. */

#include "replay.c"

enum { LISTS = 60, WIDTH = 32 };

static void tick(const bs_arg *args, const bs_dim3 *b, const bs_dim3 *grid, void *shared) {
  (void)grid, (void)shared;
  ((int32_t *)args[0].ptr)[b->x] += 1;
}

/* out[b] = sum of in + b */
static void gather(const bs_arg *args, const bs_dim3 *b, const bs_dim3 *grid, void *shared) {
  const int32_t *in = args[0].ptr;
  uint32_t sum = b->x;
  (void)grid, (void)shared;
  for (int32_t i = 0; i < args[2].i32; i++) sum += (uint32_t)in[i];
  ((int32_t *)args[1].ptr)[b->x] = (int32_t)sum;
}

static int32_t values[LISTS][WIDTH];
static int32_t widths[LISTS];

static int32_t draw(unsigned *seed, int32_t below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (int32_t)((*seed >> 8) % (uint32_t)below);
}

/* What the gathers leave, one after the other on one thread. */
static int count_wrong(int launches) {
  uint32_t now[WIDTH], sum;
  int wrong = 0;
  for (int k = 0; k < widths[0]; k++) now[k] = (uint32_t)values[0][k];
  for (int i = 1; i < launches; i++) {
    sum = 0;
    for (int k = 0; k < widths[i - 1]; k++) sum += now[k];
    for (int k = 0; k < widths[i]; k++) now[k] = sum + (uint32_t)k;
  }
  for (int k = 0; k < widths[launches - 1]; k++)
    wrong += now[k] != (uint32_t)values[launches - 1][k];
  return wrong;
}

static int run_list(bs_pool *pool, unsigned *seed) {
  int launches = 2 + draw(seed, LISTS - 2), repeat = 1 + draw(seed, 3), wrong = 0;
  int32_t ticks[WIDTH] = {0}, sink[3];
  bs_launch *list = malloc((size_t)launches * sizeof *list);
  bs_arg(*args)[3] = malloc((size_t)launches * sizeof *args);
  for (int i = 0; i < launches; i++) {
    widths[i] = draw(seed, 3) == 0 ? 1 : 1 + draw(seed, WIDTH - 1);
    if (i == 0)
      args[i][0].ptr = ticks;
    else
      args[i][0].ptr = values[i - 1], args[i][1].ptr = values[i], args[i][2].i32 = widths[i - 1];
    list[i] = (bs_launch){i ? gather : tick, args[i], (uint64_t)widths[i], 1, 1, 0, 1};
  }
  for (int k = 0; k < WIDTH; k++) values[0][k] = draw(seed, 1000);
  bs_tap tap = {(uint8_t *)values[launches - 1], (uint8_t *)sink, 4};
  bs_replay(pool, list, (uint64_t)launches, (uint64_t)repeat, &tap, 1);
  memset(list, 0xee, (size_t)launches * sizeof *list);
  free(list);
  free(args);
  for (int k = 0; k < widths[0]; k++) wrong += ticks[k] != repeat;
  for (int r = 0; r < repeat; r++) wrong += sink[r] != values[launches - 1][0];
  return wrong + count_wrong(launches);
}

/* How many values came out wrong over `lists` random lists. */
int stress(uint32_t threads, int lists, uint32_t spins, unsigned seed) {
  int32_t cpus[64];
  int wrong = 0;
  for (int i = 0; i < 64; i++) cpus[i] = -1;
  bs_pool *pool = bs_pool_open(threads, cpus, spins);
  if (pool == NULL) return -1;
  for (int i = 0; i < lists; i++) wrong += run_list(pool, &seed);
  bs_pool_close(pool);
  return wrong;
}
