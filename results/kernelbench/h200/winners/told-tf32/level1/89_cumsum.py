"""One program per row, which holds the whole row: 2-D scan, lines of 128 elements each by few threads,
then the sums of the lines."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumulative_sum(x, y, columns, LINES: tl.constexpr, LINE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, LINES)[:, None] * LINE + tl.arange(0, LINE)[None, :]
    value = tl.load(x + row + at, mask=at < columns, other=0.0)
    sums = tl.sum(value, 1)
    before = tl.cumsum(sums, 0) - sums
    tl.store(y + row + at, tl.cumsum(value, 1) + before[:, None], mask=at < columns)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lines = triton.next_power_of_2(triton.cdiv(x.shape[1], 128))
        cumulative_sum[(x.shape[0],)](x, y, x.shape[1], LINES=lines, LINE=128, num_warps=16)
        return y
