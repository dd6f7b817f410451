"""Both results are views of one allocation, and the row is read again instead of kept."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm(x, residual, weight, normed, total_out, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, hidden, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = c < hidden
        a = tl.load(x + row + c, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual + row + c, mask=inside, other=0.0).to(tl.float32)
        rounded = (a + b).to(total_out.dtype.element_ty)
        tl.store(total_out + row + c, rounded, mask=inside)
        squares += rounded.to(tl.float32) * rounded.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(squares, 0) / hidden + 1e-6)
    # Added anew: a lane may not read back what another lane has stored.
    for start in range(0, hidden, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = c < hidden
        a = tl.load(x + row + c, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual + row + c, mask=inside, other=0.0).to(tl.float32)
        total = (a + b).to(total_out.dtype.element_ty).to(tl.float32)
        scale = tl.load(weight + c, mask=inside, other=0.0).to(tl.float32)
        tl.store(normed + row + c, total * inverse * scale, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        rows, hidden = x.shape
        normed, total = torch.empty(2, rows, hidden, dtype=x.dtype, device=x.device)
        add_rms_norm[(rows,)](
            x, residual, self.weight, normed, total, hidden,
            BLOCK=2048, num_warps=8,
        )
        return normed, total
