"""A flat grid over all elements, with offsets of 64 bits."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, tl.maximum(v * 0.5 + 1.0, 0.0).to(tl.float16), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096, num_warps=8)
        return y
