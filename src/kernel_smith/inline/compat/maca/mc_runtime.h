// MACA's runtime on an NVIDIA GPU: its names, and waves of 64 threads. For nvcc alone.
#pragma once

#define __MACA__ 1

#include "kernel_smith_maca_names.h"
