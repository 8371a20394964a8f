/* Bytes a second that some threads read together: read_rate THREADS. Each reads its part of 512 MiB in
 * large pages, as eight streams side by side; the best of five passes counts.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES ((size_t)512 << 20)
#define STREAMS 8
#define PASSES 5
#define AHEAD 1024

typedef uint64_t line __attribute__((vector_size(64)));

static uint8_t *memory;
static size_t share;
static pthread_barrier_t together;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void *read_share(void *from)
{
    size_t stream = share / STREAMS / 64 * 64;
    double *best = malloc(sizeof *best);
    for (int pass = 0; pass < PASSES; pass++) {
        line sum[STREAMS] = {{0}};
        pthread_barrier_wait(&together);
        double began = now();
        for (size_t at = 0; at < stream; at += 64)
            for (int i = 0; i < STREAMS; i++) {
                const uint8_t *p = (const uint8_t *)from + (size_t)i * stream + at;
                __builtin_prefetch(p + AHEAD);
                sum[i] += *(const line *)p;
            }
        pthread_barrier_wait(&together);
        double took = now() - began;
        for (int i = 0; i < STREAMS; i++) __asm__ volatile("" ::"m"(sum[i]));
        if (pass == 0 || took < *best) *best = took;
    }
    return best;
}

int main(int count, char **words)
{
    int threads = count > 1 ? atoi(words[1]) : 1;
    pthread_t others[256];
    if (threads < 1 || threads > 256) return 2;
    memory = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    madvise(memory, BYTES, MADV_HUGEPAGE);
    memset(memory, 1, BYTES);
    share = BYTES / (size_t)threads / 64 * 64;
    pthread_barrier_init(&together, 0, (unsigned)threads);
    for (int i = 0; i < threads; i++) pthread_create(others + i, 0, read_share, memory + (size_t)i * share);
    double slowest = 0;
    for (int i = 0; i < threads; i++) {
        void *best;
        pthread_join(others[i], &best);
        if (*(double *)best > slowest) slowest = *(double *)best;
        free(best);
    }
    printf("%.0f\n", (double)BYTES / slowest);
    return 0;
}
