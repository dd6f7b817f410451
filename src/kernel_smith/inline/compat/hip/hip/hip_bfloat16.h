// HIP's older bfloat16 type.
#pragma once

#include <hip/hip_bf16.h>

typedef __nv_bfloat16 hip_bfloat16;
