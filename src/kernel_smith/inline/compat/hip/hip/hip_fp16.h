// HIP's half precision, whose functions have CUDA's names.
#pragma once

#include <hip/hip_runtime.h>
