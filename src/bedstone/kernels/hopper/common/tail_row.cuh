// A row of activations in eight bits: as each block codes it for itself, and as blocks tell it each other.
//
// Outputs that are multiplied next go by lots, of 32 that share a scale. The block that has made a lot codes it, and
// tells of it in four words: the codes, their scale, their sum times that, and the square sum of what a norm is taken of.
#pragma once
#include "copies.cuh"
#include "tail_tiles.cuh"
#include "telling.cuh"

#define LOT_WORDS 4

// A row to shared memory behind the threads' backs, until `fetched`.
static __device__ __forceinline__ void bring(float *to, const float *from, int width) {
#pragma unroll 2
    for (int i = 4 * threadIdx.x; i < width; i += 4 * THREADS) copy_16(shared_address(to + i), from + i);
}

// Where what a block has been told lies.
struct told_row {
    coded_rows codes;
    float *squares; // of each lot

    // One of a lot's eleven numbers.
    __device__ __forceinline__ u32 *at(int lot, int number) const {
        u8 *pair = codes.memory + codes.spans * SPAN + 8 * lot;
        u8 *last = number == 8 ? pair : number == 9 ? pair + 4 : (u8 *)(squares + lot);
        return (u32 *)(number < 8 ? codes.memory + LOT * lot + 4 * number : last);
    }
    __device__ __forceinline__ void put(int word, const uint4 &v) const {
        int lot = word / LOT_WORDS, number = word % LOT_WORDS * 3;
        *at(lot, number) = v.x, *at(lot, number + 1) = v.y;
        if (number < 9) *at(lot, number + 2) = v.z;
    }
    // From wherever it lies, eight values a thread at once.
    __device__ __forceinline__ void code(const float *x) const {
#pragma unroll 1
        for (int i = 8 * threadIdx.x; i < codes.spans * SPAN; i += 8 * THREADS) {
            float v[8];
            load_eight(v, x, i, codes.k);
            codes.put(v, 0, i);
        }
    }
    // All lots, of whoever has made them; past the row's end zeros.
    __device__ __forceinline__ void receive(const uint4 *told, u32 launch) const {
        constexpr int AT_ONCE = 3;
        int real = codes.k / LOT * LOT_WORDS, words = codes.spans * (SPAN / LOT) * LOT_WORDS;
#pragma unroll 1
        for (int first = threadIdx.x; first < words; first += AT_ONCE * THREADS) {
            uint4 v[AT_ONCE];
            ask_all(v, told + first, THREADS, (real - first + THREADS - 1) / THREADS, launch);
#pragma unroll
            for (int n = 0; n < AT_ONCE; ++n)
                if (first + n * THREADS < words) put(first + n * THREADS, v[n]);
        }
    }
    // Of all lots, for a warp.
    __device__ __forceinline__ float all_squares() const {
        float sum = 0;
#pragma unroll 4
        for (int i = threadIdx.x % 32; i < codes.k / LOT; i += 32) sum = __fadd_rn(sum, squares[i]);
        return warp_sum(sum);
    }
};

// A lot, a value a lane; `squares` are of what a norm is taken of.
static __device__ __forceinline__ void tell_lot(uint4 *to, float value, float squares, u32 launch) {
    int lane = threadIdx.x % 32, first = 12 * lane;
    u32 largest = __reduce_max_sync(BS_FULL, __float_as_uint(fabsf(value)));
    float scale = largest >= 0x7f800000u ? __uint_as_float(0x7fffffffu) : __fmul_rn(__uint_as_float(largest), 1.0f / 127.0f);
    int code = (i8)__float_as_uint(fmaf(value, inverse_of(scale), 12582912.f));
    float sum = scale * (float)__reduce_add_sync(BS_FULL, code);
    u32 two = (code & 255) | (__shfl_down_sync(BS_FULL, code, 1) & 255) << 8;
    u32 four = two | __shfl_down_sync(BS_FULL, two, 2) << 16;
    u32 a = __shfl_sync(BS_FULL, four, first), b = __shfl_sync(BS_FULL, four, first + 4), c = __shfl_sync(BS_FULL, four, first + 8);
    if (lane == 2) c = __float_as_uint(scale);
    if (lane == 3) a = __float_as_uint(sum), b = __float_as_uint(squares);
    if (lane < LOT_WORDS) tell(to + lane, a, b, c, launch);
}
