"""The library's product with its bias; quotient and GELU in one pass over it."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def gelu(v):
    return 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))


@triton.jit
def scaled_gelu(y, count, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + at, mask=at < count, other=0.0)
    tl.store(y + at, gelu(v * factor), mask=at < count)


class ModelNew(torch.nn.Module):
    def __init__(self, input_size, output_size, divisor):
        super().__init__()
        self.linear = torch.nn.Linear(input_size, output_size)
        self.divisor = divisor

    def forward(self, x):
        y = F.linear(x, self.linear.weight, self.linear.bias)
        scaled_gelu[(triton.cdiv(y.numel(), 2048),)](y, y.numel(), 1.0 / self.divisor, BLOCK=2048, num_warps=8)
        return y
