// Qualifiers of functions and variables.
#pragma once

// Hidden, because shared memory is a static variable of its function, and the loader would unite
// those of equal name in two libraries.
#define __global__ __attribute__((visibility("hidden")))
#define __device__ __attribute__((visibility("hidden")))
#define __host__
#define __constant__
#define __managed__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __cdecl

#if !defined(__clang__)
#define __builtin_assume(condition) ((void)0)
#endif

// Types that a launcher's parameters may have: a function is exported only if all of them are.
#define KS_PUBLIC __attribute__((visibility("default")))
