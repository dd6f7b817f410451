"""A flat grid over all elements."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_relu_kernel(x, y, z, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(z + at, tl.maximum(total, 0.0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        add_relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, z, x.numel(), BLOCK=1024)
        return z
