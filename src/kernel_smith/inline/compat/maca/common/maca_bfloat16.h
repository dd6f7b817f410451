// MACA's bfloat16, whose functions have CUDA's names.
#pragma once

#include <mc_runtime.h>

typedef __nv_bfloat16 maca_bfloat16;
typedef __nv_bfloat162 maca_bfloat162;
typedef __nv_bfloat16 __maca_bfloat16;
typedef __nv_bfloat162 __maca_bfloat162;
