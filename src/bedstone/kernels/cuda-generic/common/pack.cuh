// Values that a thread moves at once: four where everything lies on multiples of four, else one; two
// of what a matrix unit has summed.
#pragma once
#include "abi.cuh"

template <int N>
struct Pack {
    float at[N];
};

template <int N>
static __device__ __forceinline__ Pack<N> load(const float *p) {
    if constexpr (N == 4) {
        float4 v = *(const float4 *)p;
        return Pack<N>{{v.x, v.y, v.z, v.w}};
    } else {
        return Pack<N>{{*p}};
    }
}

template <int N>
static __device__ __forceinline__ Pack<N> load(const bf16 *p) {
    if constexpr (N == 4) {
        uint2 v = *(const uint2 *)p;
        return Pack<N>{{__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u),
                        __uint_as_float(v.y << 16), __uint_as_float(v.y & 0xffff0000u)}};
    } else {
        return Pack<N>{{to_f32(*p)}};
    }
}

template <int N>
static __device__ __forceinline__ Pack<N> load(const f16 *p) {
    Pack<N> v;
    if constexpr (N == 4) {
        uint2 words = *(const uint2 *)p;
        u32 pairs[2] = {words.x, words.y};
#pragma unroll
        for (int i = 0; i < 4; i++) v.at[i] = to_f32(f16{(u16)(pairs[i / 2] >> (i % 2 * 16))});
    } else {
        v.at[0] = to_f32(*p);
    }
    return v;
}

template <int N>
static __device__ __forceinline__ void store(float *p, Pack<N> v) {
    if constexpr (N == 4) *(float4 *)p = make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
    else if constexpr (N == 2) *(float2 *)p = make_float2(v.at[0], v.at[1]);
    else *p = v.at[0];
}

template <int N>
static __device__ __forceinline__ void store(bf16 *p, Pack<N> v) {
    if constexpr (N == 4) *(uint2 *)p = make_uint2(pack_bf16(v.at[0], v.at[1]), pack_bf16(v.at[2], v.at[3]));
    else if constexpr (N == 2) *(u32 *)p = pack_bf16(v.at[0], v.at[1]);
    else *p = from_f32<bf16>(v.at[0]);
}

// f of each value.
template <int N, class F>
static __device__ __forceinline__ Pack<N> each(Pack<N> v, F f) {
#pragma unroll
    for (int i = 0; i < N; i++) v.at[i] = f(v.at[i]);
    return v;
}

template <int N, class F>
static __device__ __forceinline__ Pack<N> each(Pack<N> a, Pack<N> b, F f) {
#pragma unroll
    for (int i = 0; i < N; i++) a.at[i] = f(a.at[i], b.at[i]);
    return a;
}

// `f` is told how many values it moves at once.
template <int N>
struct Lanes {
    static constexpr int count = N;
};

template <class F>
static __device__ __forceinline__ void in_packs(bool of_four, F f) {
    if (of_four) f(Lanes<4>{});
    else f(Lanes<1>{});
}

template <class... Sizes>
static __device__ __forceinline__ bool by_four(Sizes... sizes) {
    return ((sizes % 4 == 0) && ...);
}

static __device__ __forceinline__ bool aligned(const void *p) { return (u64)p % 16 == 0; }

// Where a result goes: floats, codes, or both; what is not wanted is null.
struct Forms {
    float *y;
    code_t *codes;

    template <int N>
    __device__ __forceinline__ void give(i64 i, Pack<N> v) const {
        if (y) store(y + i, v);
        if (codes) store(codes + i, v);
    }
};

// Copies that arrive in shared memory behind the thread's back, until `fetched`.
template <int N>
static __device__ __forceinline__ void fetch(float *to, const float *from) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(4 * N));
}

static __device__ __forceinline__ void fetched() { asm volatile("cp.async.wait_all;" ::: "memory"); }
