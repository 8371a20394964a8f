// The integer model of `served_toy`: a token takes WORDS words of the paged state. A thread a block.

// a row's token goes to its place; no error so far
extern "C" __global__ void store(const int *token, const int *slot, long long *table, int *error) {
  table[(long long)slot[blockIdx.x] * WORDS] = token[blockIdx.x];
  if (blockIdx.x == 0) *error = 0;
}

// a sequence's line adds up its tokens
extern "C" __global__ void fold(const int *token, const int *line, long long *sums, int rows) {
  for (int r = 0; r < rows; r++) sums[line[blockIdx.x]] += token[blockIdx.x * rows + r];
}

// the token that follows each sequence; the vocabulary's last stands for a broken logit
extern "C" __global__ void close_step(const long long *table, const long long *sums,
                                      const int *line, const int *position, const int *tables,
                                      int *next, int *error, int *token, int *at, int *slot,
                                      int rows, int vocab, int page, int width) {
  int g = blockIdx.x, last = position[(g + 1) * rows - 1];
  const int *pages = tables + g * width;
  long long sum = sums[line[g]];
  bool broken = false;
  for (int p = 0; p <= last; p++) {
    long long held = table[(long long)(pages[p / page] * page + p % page) * WORDS];
    broken |= held == vocab - 1;
    sum += held;
  }
  next[g] = token[g] = (int)(sum % (vocab - 1));
  at[g] = last + 1;
  slot[g] = last + 1 < width * page ? pages[(last + 1) / page] * page + (last + 1) % page : 0;
  if (broken) *error = 1;
}
