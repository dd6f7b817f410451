#if !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")  // keeps conditions whole, for loops to become vectors
#if defined(__AVX512F__)
#pragma GCC target("prefer-vector-width=512")
#endif
#endif
