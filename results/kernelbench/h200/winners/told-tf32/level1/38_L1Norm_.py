"""One program per row. Rows begin anywhere, so they are read from the last multiple of four elements before them, as
vectors, and what lies at their ends is stored apart. Half of a row stays in registers between the sum and the
multiplication; the rest was read last before that, and comes from the cache the second time. Both loops over it have
several pieces under way at once, and how much is held, by how many threads, is chosen by measuring."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"HELD": held, "BLOCK": block, "AHEAD": ahead}, num_warps=warps)
        for held, block, ahead, warps in (
            (32768, 8192, 1, 16), (32768, 4096, 4, 16), (16384, 8192, 3, 16), (16384, 4096, 4, 16), (8192, 4096, 4, 8),
            (8192, 8192, 3, 16),
        )
    ],
    key=[],
)
@triton.jit
def divide_by_mean(x, y, columns, HELD: tl.constexpr, BLOCK: tl.constexpr, AHEAD: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    base = start // 4 * 4
    shift = (start - base).to(tl.int32)
    end = shift + columns
    x += base
    y += base
    at = tl.arange(0, HELD)
    held = tl.load(x + at, mask=at // 4 * 4 < end, other=0.0, eviction_policy="evict_first")
    held = tl.where((at >= shift) & (at < end), held, 0.0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in tl.range(HELD, end, BLOCK, num_stages=AHEAD):
        c = first + tl.arange(0, BLOCK)
        value = tl.load(x + c, mask=c // 4 * 4 < end, other=0.0, eviction_policy="evict_last")
        sums += tl.where((c >= shift) & (c < end), tl.abs(value), 0.0)
    factor = columns / (tl.sum(tl.abs(held), 0) + tl.sum(sums, 0))
    all_held = (at // 4 * 4 >= shift) & (at // 4 * 4 + 3 < end)
    tl.store(y + at, held * factor, mask=all_held, eviction_policy="evict_first")
    for first in tl.range(HELD, end, BLOCK, num_stages=AHEAD):
        c = first + tl.arange(0, BLOCK)
        value = tl.load(x + c, mask=c // 4 * 4 < end, other=0.0, eviction_policy="evict_first")
        whole = (c // 4 * 4 >= shift) & (c // 4 * 4 + 3 < end)
        tl.store(y + c, value * factor, mask=whole, eviction_policy="evict_first")
    # The ends: of the vectors that this row shares with its neighbours, what belongs to it.
    e = tl.arange(0, 8)
    edge = tl.where(e < 4, e, end // 4 * 4 + e - 4)
    left = (edge >= shift) & (edge < end) & ((edge // 4 * 4 < shift) | (edge // 4 * 4 + 3 >= end))
    tl.store(y + edge, tl.load(x + edge, mask=left, other=0.0) * factor, mask=left)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        assert x.numel() % 4 == 0
        y = torch.empty_like(x)
        divide_by_mean[(x.shape[0],)](x, y, x.shape[1])
        return y
