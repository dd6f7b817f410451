"""One row per program; offsets within a row are of 32 bits, where it begins is of 64."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    x += start
    y += start
    for first in range(0, columns, BLOCK):
        c = first + tl.arange(0, BLOCK)
        v = tl.load(x + c, mask=c < columns, other=0.0).to(tl.float32)
        tl.store(y + c, tl.maximum(v * 0.5 + 1.0, 0.0).to(tl.float16), mask=c < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        scale_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
