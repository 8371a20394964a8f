/* An integer model that takes every shape of call, and checks all that it is told of its rows; on
 * any device, whose `FN` is a function of its own.
 *
 * The token that follows is a sum of all before it, each by its place; where a sequence has a line,
 * which holds that sum too and how many they are, it counts five times. A round drafts its own
 * tokens, some of them wrong. */

enum { BROKEN = 1, MISTOLD = 2, OTHER_LINE = 3 };

/* of one sequence: where its tokens lie and what its line holds; none where `line` is null */
typedef struct {
  int64_t *table, *line;
  const int32_t *pages;
  int32_t page, vocab, at, error;
  int64_t sum, folded;
} sequence;

FN int32_t place(const sequence *s, int32_t at) {
  return s->pages[at / s->page] * s->page + at % s->page;
}

FN int64_t worth(int64_t token, int32_t at) { return (token + 3) * (at % 7 + 1); }

FN void begin(sequence *s) {
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
FN int32_t feed(sequence *s, int32_t token) {
  if (token == s->vocab - 1) s->error = BROKEN;
  s->table[place(s, s->at)] = token;
  s->sum += worth(token, s->at);
  if (s->line) s->folded += worth(token, s->at);
  s->at++;
  return (int32_t)(((s->sum + 4 * s->folded) * 2654435761 >> 16) % (s->vocab - 1));
}

FN void fold(sequence *s, int32_t from, int32_t count) {
  if (!s->line) return;
  for (int32_t p = from; p < from + count; p++) s->line[0] += worth(s->table[place(s, p)], p);
  s->line[1] = from + count;
}

/* `rows` rows go in, each the draft of the one before; the tokens that follow each, and how many of
 * them are right: at least the first */
FN int32_t play(sequence *s, int32_t anchor, int32_t rows, int32_t *tokens) {
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

FN void fail(int32_t *error, int32_t found) {
  if (found) *error = found;
}

/* what a call is given: rows, sequences, tables and states; what it hands back and leaves behind */
typedef struct {
  const int32_t *token, *anchor, *position, *slot, *valid, *length, *bounds, *pages, *line;
  int64_t *table, *sums;
  int32_t *tokens, *counts, *error, *on_token, *on_at;
  int32_t vocab, page, width, lines, rows, emits;
} call;

FN sequence of(const call *c, int32_t g, int32_t at) {
  sequence s;
  s.table = c->table, s.line = c->lines ? c->sums + 2 * c->line[g] : 0;
  s.pages = c->pages + g * c->width;
  s.page = c->page, s.vocab = c->vocab, s.at = at;
  begin(&s);
  return s;
}

/* whether rows [from, from + rows) are what the protocol says of a sequence */
FN int told(const call *c, int32_t g, const sequence *s, int32_t rows) {
  int32_t from = c->rows ? g * c->rows : c->bounds[g];
  if (c->bounds[g] != from || c->bounds[g + 1] != from + rows) return 0;
  if (c->anchor[g] != c->token[from] || c->length[g] != s->at + rows) return 0;
  for (int32_t r = 0; r < rows; r++) {
    if (!c->valid[from + r] || c->position[from + r] != s->at + r) return 0;
    if (c->slot[from + r] != place(s, s->at + r)) return 0;
    if (c->rows > 1 && c->token[from + r] != c->anchor[g]) return 0;
  }
  return 1;
}

/* rows that belong to nobody write where they are told to, as a model's kernels do */
FN void pad(const call *c, int32_t g, int32_t rows) {
  for (int32_t r = g * rows; r < (g + 1) * rows; r++) c->table[c->slot[r]] = c->token[r];
}

/* what goes in of a sequence; what follows the last is handed back where it `emits` 1, what follows
 * each where 2, and how many of them count */
FN void take(const call *c, int32_t g, sequence *s, const int32_t *token, int32_t rows) {
  int32_t count = rows, start = s->at, next = 0;
  if (c->emits == 2) {
    c->counts[g] = count = play(s, *token, rows, c->tokens + g * rows);
    next = c->tokens[g * rows + count - 1];
  } else {
    for (int32_t r = 0; r < rows; r++) next = feed(s, token[r]);
    fold(s, start, rows);
    if (c->emits) c->tokens[g] = next;
  }
  c->on_token[g] = next, c->on_at[g] = start + count;
  fail(c->error, s->error);
}

/* `rows` of each sequence, or what their bounds say */
FN void forward_block(const call *c, int32_t g) {
  int32_t from = c->rows ? g * c->rows : c->bounds[g];
  int32_t rows = c->rows ? c->rows : c->bounds[g + 1] - from;
  if (rows == 0) return;
  if (!c->valid[from]) {
    pad(c, g, rows);
    return;
  }
  sequence s = of(c, g, c->position[from]);
  if (told(c, g, &s, rows)) {
    take(c, g, &s, c->token + from, rows);
  } else {
    *c->error = MISTOLD;
  }
}

/* the same from what the call before left */
FN void onward_block(const call *c, int32_t g) {
  sequence s = of(c, g, c->position[g]);
  take(c, g, &s, c->token + g, c->rows);
}

/* whether the first of the ranks has the rows of all sequences, and the other none */
FN void split_block(const int32_t *blocks, const int32_t *bounds, int32_t *error, int32_t groups) {
  int32_t rows = bounds[groups];
  if (blocks[0] != 0 || blocks[1] != rows || blocks[2] != rows) fail(error, MISTOLD);
}

/* whether the longest sequence is as long as is said, `more` tokens further on */
FN void measure_block(const int32_t *length, int32_t *error, int32_t groups, int32_t said,
                      int32_t more) {
  int32_t longest = 0;
  for (int32_t g = 0; g < groups; g++) longest = length[g] > longest ? length[g] : longest;
  if (longest + more != said) fail(error, MISTOLD);
}

/* drawn at random, as far as this model knows that: where it is not cold, the token that follows */
FN void draw_block(float temperature, int32_t *token, int32_t vocab) {
  if (temperature > 0) *token = (*token + 1) % (vocab - 1);
}
