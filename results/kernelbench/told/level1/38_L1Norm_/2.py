"""One program per row: the sum in one loop, the division in a second one that goes backwards, so that what was
read last comes from the cache."""

import torch
import triton
import triton.language as tl


@triton.jit
def divide_by_mean(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.abs(tl.load(x + row + at, mask=at < columns, other=0.0, eviction_policy="evict_last"))
    mean = tl.sum(sums, 0) / columns
    blocks = tl.cdiv(columns, BLOCK)
    for block in range(blocks):
        at = (blocks - 1 - block) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + row + at, mask=at < columns, other=0.0, eviction_policy="evict_first")
        tl.store(y + row + at, value / mean, mask=at < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        divide_by_mean[(x.shape[0],)](x, y, x.shape[1], BLOCK=8192, num_warps=32)
        return y
