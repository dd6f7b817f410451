#if !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")  // keeps conditions whole, for loops to become vectors
#if defined(__AVX512F__)
#pragma GCC target("prefer-vector-width=512")
#endif
#endif
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
