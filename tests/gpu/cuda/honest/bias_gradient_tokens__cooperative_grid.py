"""One cooperative launch: the whole grid waits between the partial sums and the last ones."""

import torch

from kernel_smith.inline import cuda

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
PIECES = 64

kernels = cuda(r"""
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kColumns = 32;
constexpr int kLines = 8;

template <typename T>
__global__ void sum_all(const T* x, float* partial, float* y, int64_t tokens, int columns,
                        int pieces) {
    __shared__ float lines[kLines][kColumns];
    const int across = (columns + kColumns - 1) / kColumns;
    for (int item = blockIdx.x; item < across * pieces; item += gridDim.x) {
        const int column = item % across * kColumns + threadIdx.x, piece = item / across;
        float sum = 0.0f;
        if (column < columns) {
            for (int64_t t = piece * kLines + threadIdx.y; t < tokens; t += pieces * kLines) {
                sum += static_cast<float>(x[t * columns + column]);
            }
        }
        lines[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && column < columns) {
            for (int line = 1; line < kLines; ++line) sum += lines[line][threadIdx.x];
            partial[int64_t(piece) * columns + column] = sum;
        }
        __syncthreads();
    }
    const auto grid = cg::this_grid();
    grid.sync();
    for (int64_t column = grid.thread_rank(); column < columns; column += grid.size()) {
        float sum = 0.0f;
        for (int piece = 0; piece < pieces; ++piece) {
            sum += partial[int64_t(piece) * columns + column];
        }
        y[column] = sum;
    }
}

template <typename T>
int launch(const void* x, float* partial, float* y, int64_t tokens, int columns, int pieces,
           cudaStream_t stream) {
    int device = 0, processors = 0, per_processor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, sum_all<T>, kColumns * kLines, 0);
    const int items = (columns + kColumns - 1) / kColumns * pieces;
    const int blocks = std::max(1, std::min(items, processors * per_processor));
    void* arguments[] = {&x, &partial, &y, &tokens, &columns, &pieces};
    return int(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&sum_all<T>),
                                           dim3(blocks), dim3(kColumns, kLines), arguments, 0,
                                           stream));
}

extern "C" int sum_tokens(const void* x, float* partial, float* y, int64_t tokens, int columns,
                          int pieces, int dtype, cudaStream_t stream) {
    if (dtype == 0) return launch<float>(x, partial, y, tokens, columns, pieces, stream);
    if (dtype == 1) return launch<__half>(x, partial, y, tokens, columns, pieces, stream);
    return launch<__nv_bfloat16>(x, partial, y, tokens, columns, pieces, stream);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, gradient):
        gradient = gradient.contiguous()
        tokens, columns = gradient.shape
        partial = gradient.new_empty(PIECES, columns, dtype=torch.float32)
        y = gradient.new_empty(columns, dtype=torch.float32)
        failed = kernels.sum_tokens(
            gradient, partial, y, tokens, columns, PIECES, DTYPES.index(gradient.dtype)
        )
        if failed:
            raise RuntimeError(f"launch failed: {failed}")
        return y
