"""x / (1 + |x|) in one pass over memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def softsign(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, eviction_policy="evict_first")
    tl.store(y + at, value / (1.0 + tl.abs(value)), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softsign[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048, num_warps=4)
        return y
