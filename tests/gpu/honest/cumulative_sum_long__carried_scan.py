"""One program per row: tl.cumsum of a block at a time, the total so far carried along."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumulative_sum(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    carried = 0.0
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + c, mask=c < columns, other=0.0)
        tl.store(y + row + c, tl.cumsum(v, 0) + carried, mask=c < columns)
        carried += tl.sum(v, 0)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        cumulative_sum[(x.shape[0],)](x, y, x.shape[1], BLOCK=2048, num_warps=4)
        return y
