"""One program per row. Half of a row stays in registers between the sum and the division; the rest
was read last before that, and comes from the cache the second time."""

import torch
import triton
import triton.language as tl


@triton.jit
def divide_by_mean(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    first = tl.load(x + row + at, mask=at < columns, other=0.0, eviction_policy="evict_first")
    second = tl.load(x + row + BLOCK + at, mask=BLOCK + at < columns, other=0.0, eviction_policy="evict_first")
    sums = tl.abs(first) + tl.abs(second)
    SMALL: tl.constexpr = BLOCK // 4
    tail = tl.zeros((SMALL,), tl.float32)
    for start in range(2 * BLOCK, columns, SMALL):
        c = start + tl.arange(0, SMALL)
        tail += tl.abs(tl.load(x + row + c, mask=c < columns, other=0.0, eviction_policy="evict_last"))
    mean = (tl.sum(sums, 0) + tl.sum(tail, 0)) / columns
    tl.store(y + row + at, first / mean, mask=at < columns)
    tl.store(y + row + BLOCK + at, second / mean, mask=BLOCK + at < columns)
    for start in range(2 * BLOCK, columns, SMALL):
        c = start + tl.arange(0, SMALL)
        value = tl.load(x + row + c, mask=c < columns, other=0.0, eviction_policy="evict_first")
        tl.store(y + row + c, value / mean, mask=c < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        block = max(512, triton.next_power_of_2(triton.cdiv(x.shape[1], 4)))
        divide_by_mean[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps=16)
        return y
