"""Baseline: one program per row adds and sums squares in a first pass, and scales in a second."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm(x, residual, weight, normed, added, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, hidden, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = c < hidden
        a = tl.load(x + row + c, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual + row + c, mask=inside, other=0.0).to(tl.float32)
        # Rounded to the input's type, as the reference adds before it widens.
        total = (a + b).to(added.dtype.element_ty)
        tl.store(added + row + c, total, mask=inside)
        squares += total.to(tl.float32) * total.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(squares, 0) / hidden + 1e-6)
    # Added anew: a lane may not read back what another lane has stored.
    for start in range(0, hidden, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = c < hidden
        a = tl.load(x + row + c, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual + row + c, mask=inside, other=0.0).to(tl.float32)
        total = (a + b).to(added.dtype.element_ty).to(tl.float32)
        scale = tl.load(weight + c, mask=inside, other=0.0).to(tl.float32)
        tl.store(normed + row + c, total * inverse * scale, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        rows, hidden = x.shape
        normed, added = torch.empty_like(x), torch.empty_like(x)
        add_rms_norm[(rows,)](
            x, residual, self.weight, normed, added, hidden, BLOCK=1024, num_warps=4
        )
        return normed, added
