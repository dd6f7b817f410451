"""The library's product with its bias, and both activations in one pass over it."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def mish(v):
    e = tl.exp(tl.minimum(v, 20.0))
    t = e * (e + 2.0)
    return v * (t / (t + 2.0))


@triton.jit
def mish_twice(y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + at, mask=at < count, other=0.0)
    tl.store(y + at, mish(mish(v)), mask=at < count)


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)

    def forward(self, x):
        y = F.linear(x, self.linear.weight, self.linear.bias)
        mish_twice[(triton.cdiv(y.numel(), 2048),)](y, y.numel(), BLOCK=2048, num_warps=8)
        return y
