// HIP's bfloat16, whose functions have CUDA's names.
#pragma once

#include <hip/hip_runtime.h>

typedef __nv_bfloat16 __hip_bfloat16;
typedef __nv_bfloat162 __hip_bfloat162;
