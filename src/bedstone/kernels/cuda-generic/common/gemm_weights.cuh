// How a block stages the weight rows of a pass: slots of 16 rows, 64 values of k at a time as bf16.
// Packed weights first come as they are, some steps of k at a time.
#pragma once
#include "gemm_batch.cuh"
#include "unpack.cuh"

#define BS_W_BYTES (BS_EXCHANGED * BS_SLOT_BYTES)

static __device__ __forceinline__ u32 in_shared(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// Sixteen bytes, of which the first `bytes` come from memory and the rest are zeros.
static __device__ __forceinline__ void fetch_16(void *to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(in_shared(to)), "l"(from),
                 "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void fetch_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all but the last `LEFT` groups of fetches have arrived.
template <int LEFT>
static __device__ __forceinline__ void fetch_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Where sixteen bytes of a staged row lie: so that eight rows' pieces fall into different banks.
static __device__ __forceinline__ int swizzled(int row, int piece) {
    return row * BS_ROW_BYTES + ((piece ^ (row & 7)) << 4);
}

// Eight values of a row, of which `left` are there, all or none; the others are zeros.
static __device__ __forceinline__ void fetch_values(u8 *to, const bf16 *from, int left) {
    fetch_16(to, left > 0 ? from : from + left - 8, left > 0 ? 16 : 0);
}

// The four rows of a pass of which this thread fetches a piece; null past the share's end.
struct Source {
    const u8 *row[4];

    template <class J>
    __device__ __forceinline__ void point(const J &job, int unit, int end) {
        int half = (int)threadIdx.x / 128, of_slot = (int)threadIdx.x / 8 % 16;
        const u8 *second = job.part[J::count - 1].w;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int tile = unit + (J::gated ? i % 2 * 2 : i * 2) + half;
            row[i] = nullptr;
            if (tile >= end) continue;
            Part part = part_of(job, 16, tile);
            const u8 *w = J::gated && i >= 2 ? second : part.w;
            row[i] = w + least(tile * 16 + of_slot, part.n - 1) * format::bytes(job.k);
        }
    }
};

// --- weights that are bf16 already -------------------------------------------------------------

template <class J>
static __device__ __forceinline__ void fetch_rows(u8 *to, const Source &source, const J &job, int step) {
    int piece = (int)threadIdx.x % 8, k = step * BS_DEPTH + piece * 8;
    to += swizzled((int)threadIdx.x / 8, piece);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (source.row[i]) fetch_values(to + i * 32 * BS_ROW_BYTES, (const bf16 *)source.row[i] + k, job.k - k);
}

// --- packed weights ----------------------------------------------------------------------------

// Bytes of a block of each format.
static constexpr int block_bytes(format_bf16) { return 2; }
static constexpr int block_bytes(format_f16) { return 2; }
static constexpr int block_bytes(format_q8_0) { return 34; }
static constexpr int block_bytes(format_q4_0) { return 18; }
static constexpr int block_bytes(format_q4_1) { return 20; }
static constexpr int block_bytes(format_q4_k) { return 144; }
static constexpr int block_bytes(format_q6_k) { return 210; }

// A chunk of a row: as many values as the largest block, but those that lie one after another need no
// more than a step. It begins on an even byte and is fetched with the sixteens around it.
struct Chunk {
    static constexpr int values = format::BLOCK == 1 ? BS_DEPTH : 256, steps = values / BS_DEPTH;
    static constexpr int bytes = values / format::BLOCK * block_bytes(format{});
    static constexpr int pieces = (14 + bytes + 15) / 16, pitch = 16 * pieces;
    static constexpr int stage_bytes = BS_EXCHANGED * 16 * pitch;
};

template <class J>
static __device__ __forceinline__ void fetch_chunk(u8 *to, const Source &source, const J &job, int chunk) {
    i64 row_bytes = format::bytes(job.k), from = (i64)chunk * Chunk::bytes;
    i64 bytes = least((i64)Chunk::bytes, row_bytes - from);
    to += (int)threadIdx.x / 8 * Chunk::pitch;
#pragma unroll
    for (int i = 0; i < 4; i++, to += 32 * Chunk::pitch) {
        if (!source.row[i]) continue;
        u64 first = (u64)source.row[i] + from, end = first + bytes;
        u64 at = (first & ~15ull) + threadIdx.x % 8 * 16;
        for (u8 *place = to + threadIdx.x % 8 * 16; at < end; at += 128, place += 128)
            fetch_16(place, (const void *)at, (int)least(16ull, end - at));
    }
}

// A step of a chunk as bf16; zeros past the end of k.
template <class J>
static __device__ __forceinline__ void unpack_step(u8 *to, const u8 *chunk_at, const Source &source, const J &job,
                                                   int step) {
    int piece = (int)threadIdx.x % 8, chunk = step / Chunk::steps, i = step % Chunk::steps * BS_DEPTH + piece * 8;
    bool there = step * BS_DEPTH + piece * 8 < job.k;
    to += swizzled((int)threadIdx.x / 8, piece);
    chunk_at += (int)threadIdx.x / 8 * Chunk::pitch;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        if (!source.row[r]) continue;
        const u8 *row = chunk_at + r * 32 * Chunk::pitch + (((u64)source.row[r] + (u64)chunk * Chunk::bytes) & 15);
        *(uint4 *)(to + r * 32 * BS_ROW_BYTES) = there ? unpack_eight(format{}, row, i) : make_uint4(0, 0, 0, 0);
    }
}
