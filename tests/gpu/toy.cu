// The toy model of `runtime_toy`: the next token is the sum of all tokens so far. One thread a block.

extern "C" __global__ void store(const int *token, const int *slot, long long *table) {
  table[slot[blockIdx.x]] = token[blockIdx.x];
}

// block b adds the positions p with p % grid = b, through shared memory of one word
extern "C" __global__ void part(const long long *table, const int *position, const int *pages,
                                long long *parts, int rows, int page) {
  extern __shared__ long long sum[];
  *sum = 0;
  for (int p = blockIdx.x; p <= position[rows - 1]; p += gridDim.x)
    *sum += table[pages[p / page] * page + p % page];
  parts[blockIdx.x] = *sum;
}

// the last token of the vocabulary stands for a broken logit
extern "C" __global__ void close_step(const long long *parts, const int *position,
                                      const int *pages, int *next, int *error, int *token, int *at,
                                      int *slot, int rows, int vocab, int page, int context,
                                      int count) {
  long long sum = 0;
  for (int i = 0; i < count; i++) sum += parts[i];
  *next = *token = (int)(sum % vocab);
  *at = position[rows - 1] + 1;
  *error = *next == vocab - 1;
  if (*at < context) *slot = pages[*at / page] * page + *at % page;
}
