/* What both x86-64 sets do with eight lanes: rows of codes, eight at a time. */
#ifndef BS_AVX2_H
#define BS_AVX2_H

static BS_INLINE vb vb_load(const uint8_t *p) { return (vb)_mm256_loadu_si256((const __m256i *)p); }

static BS_INLINE v8f v8_fma(v8f a, v8f b, v8f c) { return _mm256_fmadd_ps(a, b, c); }

static BS_INLINE float v8_sum(v8f v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static BS_INLINE float v8_max(v8f v)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* Two half floats side by side. */
static BS_INLINE void f32_from_f16_pair(const uint8_t *p, float *a, float *b)
{
    int word;
    memcpy(&word, p, 4);
    __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(word));
    *a = _mm_cvtss_f32(both);
    *b = _mm_cvtss_f32(_mm_movehdup_ps(both));
}

static BS_INLINE vb vb_nibbles(const uint8_t *p)
{
    __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    __m256i shifted = _mm256_srlv_epi32(both, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return (vb)_mm256_and_si256(shifted, _mm256_set1_epi8(15));
}

static BS_INLINE vb vb_nibble_half(const uint8_t *p, int high)
{
    __m256i moved = _mm256_srl_epi16((__m256i)vb_load(p), _mm_cvtsi32_si128(4 * high));
    return (vb)_mm256_and_si256(moved, _mm256_set1_epi8(15));
}

static BS_INLINE vb vb_bit_pairs(const uint8_t *p, int shift)
{
    __m256i moved = _mm256_srl_epi16((__m256i)vb_load(p), _mm_cvtsi32_si128(shift));
    moved = _mm256_and_si256(moved, _mm256_set1_epi8(3));
    return (vb)_mm256_slli_epi16(moved, 4);
}

static BS_INLINE __m256i v8_pairs(v8i a, v8i b)
{
    return _mm256_add_epi32(_mm256_unpacklo_epi64((__m256i)a, (__m256i)b),
                            _mm256_unpackhi_epi64((__m256i)a, (__m256i)b));
}

static BS_INLINE __m256i v8_quads(__m256i a, __m256i b)
{
    __m256 even = _mm256_shuffle_ps((__m256)a, (__m256)b, 0x88);
    __m256 odd = _mm256_shuffle_ps((__m256)a, (__m256)b, 0xdd);
    return _mm256_add_epi32((__m256i)even, (__m256i)odd);
}

static BS_INLINE void v8_halves(const v8i p[8], v8i *first, v8i *second)
{
    __m256i low = v8_quads(v8_pairs(p[0], p[1]), v8_pairs(p[2], p[3]));
    __m256i high = v8_quads(v8_pairs(p[4], p[5]), v8_pairs(p[6], p[7]));
    *first = (v8i)_mm256_permute2x128_si256(low, high, 0x20);
    *second = (v8i)_mm256_permute2x128_si256(low, high, 0x31);
}

static BS_INLINE v8i dot4_u8(v8i acc, vb w, vb x);

/* Sums of neighbours, of `a` and of `b` in turn by twos; each fits 16 bits. */
static BS_INLINE __m256i v8_sum_short(__m256i a, __m256i b)
{
    return _mm256_madd_epi16(_mm256_packs_epi32(a, b), _mm256_set1_epi16(1));
}

/* Rows i and i + 4 fill a register. The sum of sixteen products of a nibble and a byte fits 16 bits. */
static BS_INLINE v8i v8_nibble_dots(const uint8_t *const rows[8], size_t offset, const uint8_t *x)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    vb low = (vb)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)x));
    vb high = (vb)_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(x + 16)));
    __m256i p[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m256i both = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(rows[i] + offset)));
        both = _mm256_inserti128_si256(both, _mm_loadu_si128((const __m128i *)(rows[i + 4] + offset)), 1);
        v8i sum = dot4_u8((v8i){0}, (vb)_mm256_and_si256(both, nibble), low);
        p[i] = (__m256i)dot4_u8(sum, (vb)_mm256_and_si256(_mm256_srli_epi16(both, 4), nibble), high);
    }
    return (v8i)v8_sum_short(v8_sum_short(p[0], p[1]), v8_sum_short(p[2], p[3]));
}

static BS_INLINE int v8_word(const uint8_t *p)
{
    int word;
    memcpy(&word, p, 4);
    return word;
}

static BS_INLINE __m128i v8_words(const uint8_t *const rows[4], size_t offset)
{
    __m128i words = _mm_cvtsi32_si128(v8_word(rows[0] + offset));
    words = _mm_insert_epi32(words, v8_word(rows[1] + offset), 1);
    words = _mm_insert_epi32(words, v8_word(rows[2] + offset), 2);
    return _mm_insert_epi32(words, v8_word(rows[3] + offset), 3);
}

static BS_INLINE void v8_from_f16_pair(const uint8_t *const rows[8], size_t offset, v8f *a, v8f *b)
{
    const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    __m128i low = _mm_shuffle_epi8(v8_words(rows, offset), order);
    __m128i high = _mm_shuffle_epi8(v8_words(rows + 4, offset), order);
    *a = _mm256_cvtph_ps(_mm_unpacklo_epi64(low, high));
    *b = _mm256_cvtph_ps(_mm_unpackhi_epi64(low, high));
}

/* A half float followed by at least two more bytes of its row. */
static BS_INLINE v8f v8_from_f16(const uint8_t *const rows[8], size_t offset)
{
    v8f a, b;
    v8_from_f16_pair(rows, offset, &a, &b);
    return a;
}

static BS_INLINE void bytes_transpose(const uint8_t in[8][16], uint8_t out[16][8])
{
    __m128i a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = _mm_loadu_si128((const __m128i *)in[i]);
    /* rows i and i + 4 interleave; three rounds bring eight rows side by side */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 4]);
            b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 4]);
        }
        memcpy(a, b, sizeof a);
    }
    for (int i = 0; i < 8; i++) _mm_storeu_si128((__m128i *)out[2 * i], a[i]);
}

static BS_INLINE v8i v8_from_u8(const uint8_t *p)
{
    return (v8i)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

static BS_INLINE v8i v8_from_i8(const uint8_t *p)
{
    return (v8i)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

#endif
