// sample, sample_carried: the token drawn from logits; with _rows from those of each row, a cluster a row.
//
// A row with a logit that is not finite draws -1. `finish` makes the tokens those of the step.
#include "cut.cuh"
#include "philox.cuh"

#define ALONE 8   // blocks of a row: of the only one
#define EACH 4    // of one of several

struct Knobs {
    const float *temperature;
    const int *top_k;
    const float *top_p, *min_p;
    const i64 *seed;
};

struct Settings {
    float temperature, top_p, min_p;
    int top_k;
    u64 seed;
    u32 position;  // of the token to be drawn
};

static __device__ __forceinline__ Settings settings_of(Knobs k, int r, int position) {
    return Settings{k.temperature[r], k.top_p[r], k.min_p[r], k.top_k[r], (u64)k.seed[r], (u32)position + 1};
}

// What a row's edits and its restriction make of its logits, and where that goes.
struct Changes {
    int edits, restricted;
    const int *token;
    const float *scale, *add;
    const u32 *allowed;
    float *scores;
};

// Of `mass`, the part that `top_p` asks for: something of it at least.
static __device__ __forceinline__ u64 part_of(u64 mass, float top_p) {
    double wanted = top_p > 0 ? ceil((double)top_p * (double)mass) : 0.0;
    return wanted > 1 ? (u64)wanted : 1;
}

// The token at `target` of the weights in line, in every thread of the cluster: the warp that has it tells all.
static __device__ __forceinline__ int token_at(Row row, Scale s, Cut c, u32 least, u64 mass, u64 begins, u64 target) {
    __shared__ int token;
    bool mine = begins <= target && target < begins + mass;
    if (mine) {
        target -= begins;
        bool found = false;
        each_taken(row, s, c, least, [&](u32 w, int at) {
            u64 end = w;
#pragma unroll
            for (int step = 1; step < 32; step <<= 1) {
                u64 other = __shfl_up_sync(BS_FULL, end, step);
                if (lane() >= step) end += other;
            }
            u32 past = __ballot_sync(BS_FULL, end > target);
            if (!found && past) {
                int which = __shfl_sync(BS_FULL, at, __ffs(past) - 1);
                for (int b = lane(); b < cluster_size(); b += 32) *of_block(&token, b) = which;
                found = true;
            }
            u64 all = __shfl_sync(BS_FULL, end, 31);
            target -= found ? 0 : all;
        });
    }
    cluster_sync();
    return token;
}

static __device__ __noinline__ int drawn(Row row, int vocab, Best top, Settings s, Bins &bins, int &turn) {
    __shared__ u64 warps[WARPS];
    Scale scale = {top.value, s.temperature};
    Cut c = {LEFT_OUT, 0};
    if (s.top_k > 0 && s.top_k < vocab) c = cut_at(row, scale, COUNT, (u64)s.top_k, LEFT_OUT, bins, turn);
    if (s.top_p < 1) {
        u64 mass = weigh(row, scale, c, 1);
        u64 wanted = part_of(of_row(lane() ? 0 : mass, turn), s.top_p);
        c = cut_at(row, scale, WEIGHT, wanted, c.value, bins, turn);
    }
    float likely = s.min_p < 1 ? s.min_p : s.min_p >= 1 ? 1.0f : 0.0f;
    u32 least = likely > 0 ? max((u32)(likely * (float)ONE), 1u) : 1u;
    u64 mass = weigh(row, scale, c, least), before = 0, block = 0, sum = 0;
    if (lane() == 0) warps[warp()] = mass;
    __syncthreads();
    for (int i = 0; i < WARPS; i++) {
        if (i == warp()) before = block;
        block += warps[i];
    }
    Blocks<u64> all = told(block, turn);
#pragma unroll
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (i < cluster_size()) {
            if (i < cluster_rank()) before += all.of[i];
            sum += all.of[i];
        }
    u64 target = __umul64hi(random_bits(s.seed, s.position), sum);
    return token_at(row, scale, c, least, mass, before, target);
}

static __device__ __forceinline__ float edited(float logit, float scale, float add) {
    float made = (logit > 0 ? logit / scale : logit * scale) + add;
    if (!(made > LEFT_OUT)) return LEFT_OUT;
    return made < -LEFT_OUT ? made : -LEFT_OUT;
}

// The edits of this block's slice. A warp at a time, and of its lanes one after another where they edit the same
// token, so that edits come in their order.
static __device__ __forceinline__ void edit(Row row, Changes made) {
    for (int first = 0; first < made.edits; first += THREADS) {
        int e = first + threadIdx.x;
        int token = e < made.edits ? made.token[e] : -1;
        bool own = token >= row.begin && token < row.end;
        float scale = own ? made.scale[e] : 1.0f, add = own ? made.add[e] : 0.0f;
        for (int w = 0; w < WARPS && first + 32 * w < made.edits; w++) {
            if (w == warp()) {
                u32 same = __match_any_sync(BS_FULL, own ? token : -1 - lane());
                int rank = __popc(same & ((1u << lane()) - 1));
                int ranks = __reduce_max_sync(BS_FULL, (u32)rank);
                for (int turn = 0; turn <= ranks; turn++) {
                    if (own && rank == turn) made.scores[token] = edited(made.scores[token], scale, add);
                    __syncwarp();
                }
            }
            __syncthreads();
        }
    }
}

// The scores of this block's slice; other blocks look at their own alone.
static __device__ __noinline__ void change(Row row, Changes made) {
    for (int i = row.begin + threadIdx.x; i < row.end; i += THREADS) made.scores[i] = row.x[i];
    __syncthreads();
    edit(row, made);
    if (made.restricted)
        for (int i = row.begin + threadIdx.x; i < row.end; i += THREADS)
            if (!(made.allowed[i / 32] >> (i % 32) & 1)) made.scores[i] = LEFT_OUT;
    __syncthreads();
}

// The token of a row whose logits are finite, `top` the likeliest of them.
static __device__ __forceinline__ int token_of(Row row, int vocab, Best top, Settings s, Changes made, Bins &bins,
                                               int &turn) {
    if (made.edits > 0 || made.restricted) {
        change(row, made);
        row.x = made.scores;
        Best left = search(row, turn);
        // nothing may come: what would have come unchanged does
        if (left.value <= LEFT_OUT) return top.index;
        top = left;
    }
    if (!(s.temperature > 0) || top.value <= LEFT_OUT) return top.index;
    return drawn(row, vocab, top, s, bins, turn);
}

// --- log-probabilities -----------------------------------------------------------------------------------------

#define MOST_TOLD 32

struct Report {
    int asked, most;
    float *own, *values;
    int *tokens;
};

// The likeliest of a block's slice, one after another: each thread has its own next one at hand.
static __device__ __forceinline__ void rank_slice(Row row, int n, Best *ranked) {
    auto next = [&](Best last) {
        Best best = nothing();
        each(row, [&](float x, int at, bool there) {
            bool behind = x < last.value || (x == last.value && at > last.index);
            if (there && behind && x > best.value) best = Best{x, at, 1};
        });
        return best;
    };
    Best own = next(Best{__int_as_float(0x7f800000), -1, 1});
    for (int rank = 0; rank < n; rank++) {
        Best best = of_block(own);
        if (threadIdx.x == 0) ranked[rank] = best;
        // a warp goes through its chunk together
        bool mine = own.index == best.index && best.index != nothing().index;
        if (__any_sync(BS_FULL, mine)) {
            Best after = next(own);
            own = mine ? after : own;
        }
    }
    __syncthreads();
}

// The likeliest of all slices, merged by one thread.
static __device__ __forceinline__ void merge(Best *ranked, int n, double all, Report to) {
    int taken[MOST_BLOCKS] = {};
    for (int rank = 0; rank < n; rank++) {
        Best best = nothing();
        int of = 0;
#pragma unroll
        for (int b = 0; b < MOST_BLOCKS; b++) {
            if (b >= cluster_size() || taken[b] >= n) continue;
            Best other = better(best, of_block(ranked, b)[taken[b]]);
            if (other.index != best.index) of = b;
            best = other;
        }
#pragma unroll
        for (int b = 0; b < MOST_BLOCKS; b++) taken[b] += b == of;
        to.tokens[rank] = best.index;
        to.values[rank] = (float)((double)best.value - all);
    }
}

static __device__ __noinline__ void tell(Row row, int vocab, Best top, int token, Report to, int &turn) {
    __shared__ Best ranked[MOST_TOLD];
    double sum = 0;
    each(row, [&](float x, int, bool there) { sum += there ? (double)expf(x - top.value) : 0.0; });
    double all = (double)top.value + log(of_row(sum, turn));
    int n = min(min(to.asked, min(to.most, MOST_TOLD)), vocab);
    if (n > 0) rank_slice(row, n, ranked);
    cluster_sync();
    if (cluster_rank() == 0 && threadIdx.x == 0) {
        *to.own = (float)((double)row.x[token] - all);
        merge(ranked, n, all, to);
    }
}

// --- entries ---------------------------------------------------------------------------------------------------

// Shared memory of a block may be written to once the block has begun.
static __device__ __forceinline__ void start() {
    before_next();
    cluster_sync();
    after_previous();
}

// Without clusters the first of a row's blocks does all of it.
static __device__ __forceinline__ bool idle_block(int share) { return cluster_size() == 1 && blockIdx.x % share > 0; }
static __device__ __forceinline__ bool last_word() { return cluster_rank() == 0 && threadIdx.x == 0; }

struct Kept {
    float *temperature;
    int *top_k;
    float *top_p, *min_p;
    i64 *seed;
};

static __device__ __forceinline__ void keep(Kept to, int r, Settings s) {
    to.temperature[r] = s.temperature;
    to.top_k[r] = s.top_k;
    to.top_p[r] = s.top_p;
    to.min_p[r] = s.min_p;
    to.seed[r] = (i64)s.seed;
}

// Where a draw goes, and what it is asked besides; no block leaves while another may still ask it.
static __device__ __forceinline__ void draw(const float *x, int vocab, Settings s, Changes made, Report to, int *token) {
    __shared__ Bins bins;
    int turn = 0;
    Row row = row_of(x, vocab);
    Best top = search(row, turn);
    int found = -1;
    if (top.finite) {
        found = token_of(row, vocab, top, s, made, bins, turn);
        if (to.asked >= 0) tell(row, vocab, top, found, to, turn);
    }
    if (last_word()) *token = found;
    cluster_sync();
}

#define KNOBS                                                                                                     \
    const float *logits, const int *position, const float *temperature, const int *top_k, const float *top_p,     \
        const float *min_p, const i64 *seed
#define CHANGES                                                                                                   \
    const int *edits, const int *edit_token, const float *edit_scale, const float *edit_add, const int *restricted, \
        const int *allowed, const int *report
#define TOLD float *scores, float *logprob, int *top_token, float *top_logprob
#define KEPT float *to_temperature, int *to_top_k, float *to_top_p, float *to_min_p, i64 *to_seed

// Sequence `r`, whose last row is at position number `last`.
static __device__ __forceinline__ void sample_row(int r, int last, KNOBS, CHANGES, int *drawn, TOLD, KEPT, int vocab,
                                                  int most_edits, int most) {
    Settings s = settings_of(Knobs{temperature, top_k, top_p, min_p, seed}, r, position[last]);
    if (last_word()) keep(Kept{to_temperature, to_top_k, to_top_p, to_min_p, to_seed}, r, s);
    i64 edit = (i64)r * most_edits, told = (i64)r * most, words = (i64)r * ((vocab + 31) / 32);
    Changes made = {min(edits[r], most_edits), restricted[r], edit_token + edit, edit_scale + edit, edit_add + edit,
                    (const u32 *)allowed + words, scores + (i64)r * vocab};
    Report to = {report[r], most, logprob + r, top_logprob + told, top_token + told};
    draw(logits + (i64)r * vocab, vocab, s, made, to, drawn + r);
}

// The same as the step before left it, with nothing asked besides.
static __device__ __forceinline__ void sample_row_carried(int r, int last, KNOBS, int *drawn, int vocab) {
    Settings s = settings_of(Knobs{temperature, top_k, top_p, min_p, seed}, r, position[last]);
    draw(logits + (i64)r * vocab, vocab, s, Changes{}, Report{-1}, drawn + r);
}

BS_KERNEL(THREADS, 1)
sample(KNOBS, CHANGES, int *drawn, TOLD, KEPT, int rows, int vocab, int most_edits, int most) {
    start();
    if (idle_block(ALONE)) return;
    sample_row(0, rows - 1, logits, position, temperature, top_k, top_p, min_p, seed, edits, edit_token, edit_scale,
               edit_add, restricted, allowed, report, drawn, scores, logprob, top_token, top_logprob, to_temperature,
               to_top_k, to_top_p, to_min_p, to_seed, vocab, most_edits, most);
}

BS_KERNEL(THREADS, 1)
sample_rows(KNOBS, CHANGES, int *drawn, TOLD, KEPT, int rows, int vocab, int most_edits, int most) {
    start();
    if (idle_block(EACH)) return;
    int r = blockIdx.x / EACH;
    sample_row(r, r, logits, position, temperature, top_k, top_p, min_p, seed, edits, edit_token, edit_scale, edit_add,
               restricted, allowed, report, drawn, scores, logprob, top_token, top_logprob, to_temperature, to_top_k,
               to_top_p, to_min_p, to_seed, vocab, most_edits, most);
}

BS_KERNEL(THREADS, 1)
sample_carried(KNOBS, int *drawn, int rows, int vocab) {
    start();
    if (idle_block(ALONE)) return;
    sample_row_carried(0, rows - 1, logits, position, temperature, top_k, top_p, min_p, seed, drawn, vocab);
}

BS_KERNEL(THREADS, 1)
sample_carried_rows(KNOBS, int *drawn, int rows, int vocab) {
    start();
    if (idle_block(EACH)) return;
    int r = blockIdx.x / EACH;
    sample_row_carried(r, r, logits, position, temperature, top_k, top_p, min_p, seed, drawn, vocab);
}
