/* An integer model that takes every shape of call, and checks all that it is told of its rows.
 *
 * The token that follows is a sum of all before it, each by its place; where a sequence has a line,
 * which holds that sum too and how many they are, it counts five times. A round drafts its own tokens,
 * some of them wrong. */

#include "kernel.h"

enum { BROKEN = 1, MISTOLD = 2, OTHER_LINE = 3 };

/* of one sequence: where its tokens lie and what its line holds; none where `line` is null */
typedef struct {
  int64_t *table, *line;
  const int32_t *pages;
  int32_t page, vocab, at, error;
  int64_t sum, folded;
} sequence;

static int32_t place(const sequence *s, int32_t at) {
  return s->pages[at / s->page] * s->page + at % s->page;
}

static int64_t worth(int64_t token, int32_t at) { return (token + 3) * (at % 7 + 1); }

static void begin(sequence *s) {
  s->error = 0, s->sum = 0, s->folded = 0;
  for (int32_t p = 0; p < s->at; p++) {
    int64_t token = s->table[place(s, p)];
    if (token == s->vocab - 1) s->error = BROKEN;
    s->sum += worth(token, p);
  }
  if (s->line && s->line[1] != s->at) s->error = OTHER_LINE;
  if (s->line) s->folded = s->line[0];
}

/* a token goes in; the one that follows */
static int32_t feed(sequence *s, int32_t token) {
  if (token == s->vocab - 1) s->error = BROKEN;
  s->table[place(s, s->at)] = token;
  s->sum += worth(token, s->at);
  if (s->line) s->folded += worth(token, s->at);
  s->at++;
  return (int32_t)(((s->sum + 4 * s->folded) * 2654435761 >> 16) % (s->vocab - 1));
}

static void fold(sequence *s, int32_t from, int32_t count) {
  if (!s->line) return;
  for (int32_t p = from; p < from + count; p++) s->line[0] += worth(s->table[place(s, p)], p);
  s->line[1] = from + count;
}

/* `rows` rows go in, each the draft of the one before; the tokens that follow each, and how many of
 * them are right: at least the first */
static int32_t play(sequence *s, int32_t anchor, int32_t rows, int32_t *tokens) {
  int32_t count = 1, right = 1, from = s->at, fed = anchor;
  for (int32_t r = 0; r < rows; r++) {
    tokens[r] = feed(s, fed);
    int32_t wrong = (s->sum + 2 * r) % 5 > 2;
    right = right && !wrong;
    if (r + 1 < rows) count += right;
    fed = (tokens[r] + wrong) % (s->vocab - 1);
  }
  fold(s, from, count);
  return count;
}

static sequence of(const bs_arg *args, int32_t g, const bs_arg *sizes) {
  /* pages, line, kv, sums; vocab, page, width, lines */
  sequence s = {.table = args[2].ptr, .vocab = sizes[0].i32, .page = sizes[1].i32};
  s.pages = (const int32_t *)args[0].ptr + g * sizes[2].i32;
  s.line = sizes[3].i32 ? (int64_t *)args[3].ptr + 2 * ((const int32_t *)args[1].ptr)[g] : 0;
  return s;
}

static void fail(int32_t *error, int32_t found) {
  if (found) *error = found;
}

/* no error so far */
BS_KERNEL(clear, "out buffer<i32>") {
  UNUSED;
  *(int32_t *)args[0].ptr = 0;
}

/* whether rows [from, to) are what the protocol says of a sequence of `at` tokens */
static int told(const bs_arg *args, int32_t g, const sequence *s, int32_t rows, int32_t round) {
  const int32_t *token = args[0].ptr, *anchor = args[1].ptr, *position = args[2].ptr;
  const int32_t *slot = args[3].ptr, *valid = args[4].ptr, *length = args[5].ptr;
  const int32_t *bounds = args[6].ptr;
  int32_t from = round ? g * round : bounds[g];
  if (bounds[g] != from || bounds[g + 1] != from + rows || anchor[g] != token[from]) return 0;
  if (length[g] != s->at + rows) return 0;
  for (int32_t r = 0; r < rows; r++) {
    if (!valid[from + r] || position[from + r] != s->at + r) return 0;
    if (slot[from + r] != place(s, s->at + r)) return 0;
    if (round > 1 && token[from + r] != anchor[g]) return 0;
  }
  return 1;
}

/* rows that belong to nobody write where they are told to, as a model's kernels do */
static void pad(const bs_arg *args, int32_t g, int32_t rows) {
  const int32_t *token = args[0].ptr, *slot = args[3].ptr;
  int64_t *table = args[9].ptr;
  for (int32_t r = g * rows; r < (g + 1) * rows; r++) table[slot[r]] = token[r];
}

/* `rows` of each sequence, or what their bounds say: `emits` 0 nothing, 1 what follows the last, 2
 * what follows each, and how many of them count */
BS_KERNEL(forward,
          "in buffer<i32>, in buffer<i32>, in buffer<i32>, in buffer<i32>, in buffer<i32>, "
          "in buffer<i32>, in buffer<i32>, in buffer<i32>, in buffer<i32>, inout state, "
          "inout state, out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, "
          "out buffer<i32>, i32, i32, i32, i32, i32, i32") {
  UNUSED;
  const int32_t *token = args[0].ptr, *position = args[2].ptr, *valid = args[4].ptr;
  const int32_t *bounds = args[6].ptr;
  int32_t *tokens = args[11].ptr, *counts = args[12].ptr, *error = args[13].ptr;
  int32_t *on_token = args[14].ptr, *on_at = args[15].ptr;
  int32_t round = args[20].i32, emits = args[21].i32, g = (int32_t)block->x;
  int32_t from = round ? g * round : bounds[g], rows = round ? round : bounds[g + 1] - from;
  sequence s = of(args + 7, g, args + 16);
  if (rows == 0) return;
  if (!valid[from]) {
    pad(args, g, rows);
    return;
  }
  s.at = position[from];
  begin(&s);
  if (!told(args, g, &s, rows, round)) {
    *error = MISTOLD;
    return;
  }
  int32_t count = 1, start = s.at, next = 0;
  if (emits == 2) {
    counts[g] = count = play(&s, token[from], rows, tokens + g * rows);
    next = tokens[g * rows + count - 1];
  } else {
    for (int32_t r = 0; r < rows; r++) next = feed(&s, token[from + r]);
    fold(&s, start, rows);
    if (emits) tokens[g] = next;
    count = rows;
  }
  on_token[g] = next, on_at[g] = start + count;
  fail(error, s.error);
}

/* whether the first of the ranks has the rows of all sequences, and the other none */
BS_KERNEL(split, "in buffer<i32>, in buffer<i32>, inout buffer<i32>, i32") {
  UNUSED;
  const int32_t *blocks = args[0].ptr, *bounds = args[1].ptr;
  int32_t rows = bounds[args[3].i32];
  if (blocks[0] != 0 || blocks[1] != rows || blocks[2] != rows) fail(args[2].ptr, MISTOLD);
}

/* whether the longest sequence is as long as is said, `more` tokens further on */
BS_KERNEL(measure, "in buffer<i32>, inout buffer<i32>, i32, i32, i32") {
  UNUSED;
  const int32_t *length = args[0].ptr;
  int32_t longest = 0;
  for (int32_t g = 0; g < args[2].i32; g++) longest = length[g] > longest ? length[g] : longest;
  if (longest + args[4].i32 != args[3].i32) fail(args[1].ptr, MISTOLD);
}

/* drawn at random, as far as this model knows that: where it is not cold, the token that follows */
BS_KERNEL(draw, "in buffer<f32>, inout buffer<i32>, i32") {
  UNUSED;
  const float *temperature = args[0].ptr;
  int32_t *token = (int32_t *)args[1].ptr + block->x;
  if (temperature[block->x] > 0) *token = (*token + 1) % (args[2].i32 - 1);
}

/* as `forward`, from what the call before left */
BS_KERNEL(onward,
          "in buffer<i32>, in buffer<i32>, inout state, inout state, in buffer<i32>, "
          "in buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, out buffer<i32>, "
          "out buffer<i32>, i32, i32, i32, i32, i32, i32") {
  UNUSED;
  const int32_t *token = args[4].ptr, *at = args[5].ptr;
  int32_t *tokens = args[6].ptr, *counts = args[7].ptr;
  int32_t *on_token = args[9].ptr, *on_at = args[10].ptr;
  int32_t rows = args[15].i32, emits = args[16].i32, g = (int32_t)block->x, start = at[g];
  sequence s = of(args, g, args + 11);
  s.at = start;
  begin(&s);
  int32_t count = play(&s, token[g], rows, tokens + g * rows);
  if (emits == 2) counts[g] = count;
  on_token[g] = tokens[g * rows + count - 1], on_at[g] = start + count;
  fail(args[8].ptr, s.error);
}
