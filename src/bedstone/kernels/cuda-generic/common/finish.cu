// finish, finish_rows: the tokens drawn become those of the step, which advances; one warp.
//
// A token below zero says that its row's logits were not finite, which is an error: nothing advances, and
// every output still holds something a next step may read safely.
#include "advance.cuh"

#define THREADS 32

BS_KERNEL(THREADS)
finish(const int *drawn, const int *position, const int *pages, int *next, int *error, int *token, int *at,
      int *to_slot, int *run, int rows, int page, int pages_width) {
    before_next();
    after_previous();
    if (threadIdx.x > 0) return;
    int found = *drawn, finite = found >= 0, advanced = position[rows - 1] + finite;
    *next = *token = finite ? found : 0;
    *error = !finite;
    bool inside = place(Advance{next, error, token, at, to_slot}, 0, advanced, pages, page, pages_width);
    if (finite && inside) run[advanced] = found;
}

// Each row is a sequence. The step is one: bad logits of any row keep all where they are.
BS_KERNEL(THREADS)
finish_rows(const int *drawn, const int *position, const int *pages, int *next, int *error, int *token, int *at,
           int *to_slot, int rows, int page, int pages_width) {
    before_next();
    after_previous();
    int finite = 1;
    for (int r = threadIdx.x; r < rows; r += THREADS) finite &= drawn[r] >= 0;
    finite = __all_sync(BS_FULL, finite);
    if (threadIdx.x == 0) *error = !finite;
    Advance out = {next, error, token, at, to_slot};
    for (int r = threadIdx.x; r < rows; r += THREADS) {
        place(out, r, position[r] + finite, pages + (i64)r * pages_width, page, pages_width);
        next[r] = token[r] = finite ? drawn[r] : 0;
    }
}
