"""The whole row stays in registers, so everything is read once."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm(x, residual, weight, normed, added, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    c = tl.arange(0, BLOCK)
    inside = c < hidden
    a = tl.load(x + row + c, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(residual + row + c, mask=inside, other=0.0).to(tl.float32)
    rounded = (a + b).to(added.dtype.element_ty)
    tl.store(added + row + c, rounded, mask=inside)
    total = rounded.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(total * total, 0) / hidden + 1e-6)
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
            x, residual, self.weight, normed, added, hidden,
            BLOCK=triton.next_power_of_2(hidden), num_warps=8,
        )
        return normed, added
