// The warpgroup matrix instruction: D [64, N] += A [64, 16] B [N, 16] transposed, bf16 operands in shared
// memory, rows of 128 bytes whose sixteen-byte pieces lie where the hardware's swizzle puts them.
#pragma once
#include "abi.cuh"

#define BS_D8(i)                                                                                                 \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define BS_D32(i) BS_D8(i), BS_D8(i + 8), BS_D8(i + 16), BS_D8(i + 24)
#define BS_TEXT_0_7 "%0,%1,%2,%3,%4,%5,%6,%7"
#define BS_TEXT_8_15 "%8,%9,%10,%11,%12,%13,%14,%15"
#define BS_TEXT_0_31 \
    BS_TEXT_0_7 "," BS_TEXT_8_15 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define BS_TEXT_32_63                                                                                       \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56," \
    "%57,%58,%59,%60,%61,%62,%63"
#define BS_TEXT_64_79 "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define BS_TEXT_80_127                                                                                    \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116," \
    "%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

// `a`, `b` and `more` stand behind the accumulators; `more` 0 starts from zeros.
#define BS_WGMMA(shape, text, a, b, more, ...)                                                          \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " more ", 0;\n"                                      \
                 "wgmma.mma_async.sync.aligned." shape ".f32.bf16.bf16 {" text "}, " a ", " b           \
                 ", p, 1, 1, 0, 0;\n}\n"                                                                \
                 : __VA_ARGS__                                                                          \
                 : "l"(rows), "l"(columns), "r"(sum))

template <int N>
static __device__ __forceinline__ void wgmma(float (&d)[N / 2], u64 rows, u64 columns, int sum) {
    if constexpr (N == 16)
        BS_WGMMA("m64n16k16", BS_TEXT_0_7, "%8", "%9", "%10", BS_D8(0));
    else if constexpr (N == 32)
        BS_WGMMA("m64n32k16", BS_TEXT_0_7 "," BS_TEXT_8_15, "%16", "%17", "%18", BS_D8(0), BS_D8(8));
    else if constexpr (N == 64)
        BS_WGMMA("m64n64k16", BS_TEXT_0_31, "%32", "%33", "%34", BS_D32(0));
    else if constexpr (N == 128)
        BS_WGMMA("m64n128k16", BS_TEXT_0_31 "," BS_TEXT_32_63, "%64", "%65", "%66", BS_D32(0), BS_D32(32));
    else if constexpr (N == 160)
        BS_WGMMA("m64n160k16", BS_TEXT_0_31 "," BS_TEXT_32_63 "," BS_TEXT_64_79, "%80", "%81", "%82", BS_D32(0),
                 BS_D32(32), BS_D8(64), BS_D8(72));
    else
        BS_WGMMA("m64n256k16",
                 BS_TEXT_0_31 "," BS_TEXT_32_63 "," BS_TEXT_64_79 "," BS_TEXT_80_127, "%128", "%129",
                 "%130", BS_D32(0), BS_D32(32), BS_D32(64), BS_D32(96));
}

// Where a tile begins for the instruction: groups of eight rows 1,024 bytes apart, swizzled by 128.
static __device__ __forceinline__ u64 wgmma_tile(u32 address) {
    return (u64)(address >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

static __device__ __forceinline__ void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until at most `LEFT` groups are still multiplied; the accumulators may be read where it is 0.
template <int LEFT, int N>
static __device__ __forceinline__ void wgmma_wait(float (&d)[N]) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}
