constexpr int64_t HALVES =
#if defined(__AVX512F__)
    16;
#else
    8;
#endif
inline void widen(const Half* from, float* to, int64_t count) {
    int64_t whole = 0;
#if defined(__F16C__)
    whole = count / HALVES * HALVES;
    for (int64_t i = 0; i < whole; i += HALVES)
#if defined(__AVX512F__)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(from + i))));
#else
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i))));
#endif
#endif
    for (int64_t i = whole; i < count; ++i) to[i] = from[i];
}
inline void narrow(const float* from, Half* to, int64_t count) {
    int64_t whole = 0;
#if defined(__F16C__)
    whole = count / HALVES * HALVES;
    for (int64_t i = 0; i < whole; i += HALVES)
#if defined(__AVX512F__)
        _mm256_storeu_si256((__m256i*)(to + i), _mm512_cvtps_ph(_mm512_loadu_ps(from + i), 0));
#else
        _mm_storeu_si128((__m128i*)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
#endif
#endif
    for (int64_t i = whole; i < count; ++i) to[i] = from[i];
}
