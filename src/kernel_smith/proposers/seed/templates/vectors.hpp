// How wide a vector of this processor is.
#if defined(__AVX512F__)
constexpr int64_t VECTOR_BYTES = 64;
#elif defined(__AVX__)
constexpr int64_t VECTOR_BYTES = 32;
#else
constexpr int64_t VECTOR_BYTES = 16;
#endif
