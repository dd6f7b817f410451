// MACA's half precision, whose functions have CUDA's names.
#pragma once

#include <mc_runtime.h>

typedef __half maca_half;
typedef __half2 maca_half2;
