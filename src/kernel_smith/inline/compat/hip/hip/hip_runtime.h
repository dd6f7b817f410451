// HIP's runtime on an NVIDIA GPU: its names, and waves of 64 threads. For nvcc alone.
#pragma once

#include "kernel_smith_hip_names.h"

#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
    kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)

#define __shfl(...) kernel_smith::shfl(__VA_ARGS__)
#define __shfl_xor(...) kernel_smith::shfl_xor(__VA_ARGS__)
#define __shfl_up(...) kernel_smith::shfl_up(__VA_ARGS__)
#define __shfl_down(...) kernel_smith::shfl_down(__VA_ARGS__)
#define __ballot(...) kernel_smith::ballot(__VA_ARGS__)
#define __any(...) kernel_smith::any(__VA_ARGS__)
#define __all(...) kernel_smith::all(__VA_ARGS__)
#define __lane_id() kernel_smith::lane_index()
#define __builtin_amdgcn_wave_barrier() kernel_smith::syncwarp()
