"""The weight is loaded along with the row instead of after the sum, few rows get more warps and
many rows fewer, and work larger than the L2 cache is streamed past it."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm(
    x, residual, weight, normed, added,
    HIDDEN: tl.constexpr, BLOCK: tl.constexpr, POLICY: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * HIDDEN
    c = tl.arange(0, BLOCK)
    inside = c < HIDDEN
    a = tl.load(x + row + c, mask=inside, other=0.0, eviction_policy=POLICY)
    b = tl.load(residual + row + c, mask=inside, other=0.0, eviction_policy=POLICY)
    scale = tl.load(weight + c, mask=inside, other=0.0, eviction_policy="evict_last")
    rounded = (a.to(tl.float32) + b.to(tl.float32)).to(added.dtype.element_ty)
    tl.store(added + row + c, rounded, mask=inside, eviction_policy=POLICY)
    total = rounded.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(total * total, 0) * (1.0 / HIDDEN) + 1e-6)
    result = total * inverse * scale.to(tl.float32)
    tl.store(normed + row + c, result, mask=inside, eviction_policy=POLICY)


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        rows, hidden = x.shape
        normed, added = torch.empty_like(x), torch.empty_like(x)
        block = triton.next_power_of_2(hidden)
        # With a multiprocessor for each row its latency counts: eight values per thread.
        # Otherwise 32 per thread, for more bytes in flight and a shorter sum across warps.
        per_thread = 8 if rows <= 132 else 32
        add_rms_norm[(rows,)](
            x, residual, self.weight, normed, added,
            HIDDEN=hidden, BLOCK=block,
            POLICY="evict_first" if x.numel() * x.element_size() > 16 << 20 else "",
            num_warps=min(32, max(1, block // (32 * per_thread))),
        )
        return normed, added
