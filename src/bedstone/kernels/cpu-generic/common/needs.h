/* Every module states which CPU features it was compiled for, in Linux's names: the loader compares
 * them with the machine's before it calls anything.
 */
#ifndef BS_NEEDS_H
#define BS_NEEDS_H

__attribute__((visibility("default"))) const char bs_needs[] = ""
#ifdef __SSE3__
    " pni"
#endif
#ifdef __SSSE3__
    " ssse3"
#endif
#ifdef __SSE4_1__
    " sse4_1"
#endif
#ifdef __SSE4_2__
    " sse4_2"
#endif
#ifdef __POPCNT__
    " popcnt"
#endif
#ifdef __XSAVE__
    " xsave"
#endif
#ifdef __MOVBE__
    " movbe"
#endif
#ifdef __LZCNT__
    " abm"
#endif
#ifdef __BMI__
    " bmi1"
#endif
#ifdef __BMI2__
    " bmi2"
#endif
#ifdef __F16C__
    " f16c"
#endif
#ifdef __FMA__
    " fma"
#endif
#ifdef __AVX__
    " avx"
#endif
#ifdef __AVX2__
    " avx2"
#endif
#ifdef __AVXVNNI__
    " avx_vnni"
#endif
#ifdef __AVX512F__
    " avx512f"
#endif
#ifdef __AVX512BW__
    " avx512bw"
#endif
#ifdef __AVX512CD__
    " avx512cd"
#endif
#ifdef __AVX512DQ__
    " avx512dq"
#endif
#ifdef __AVX512VL__
    " avx512vl"
#endif
#ifdef __AVX512VNNI__
    " avx512_vnni"
#endif
#ifdef __AVX512VBMI__
    " avx512vbmi"
#endif
#ifdef __AVX512BF16__
    " avx512_bf16"
#endif
#ifdef __AVX512FP16__
    " avx512_fp16"
#endif
#ifdef __CLZERO__
    " clzero"
#endif
#ifdef __AMX_TILE__
    " amx_tile"
#endif
#ifdef __AMX_INT8__
    " amx_int8"
#endif
#ifdef __AMX_BF16__
    " amx_bf16"
#endif
    ;

#endif
