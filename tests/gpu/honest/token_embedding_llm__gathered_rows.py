"""A row of the table per program, scaled on its way."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather(tokens, table, out, hidden, factor, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    token = tl.load(tokens + place)
    v = tl.load(table + token * hidden + c, mask=c < hidden, other=0.0).to(tl.float32)
    tl.store(out + place * hidden + c, (v * factor).to(out.dtype.element_ty), mask=c < hidden)


class ModelNew(torch.nn.Module):
    def __init__(self, vocabulary, hidden, dtype):
        super().__init__()
        kind = getattr(torch, dtype)
        self.table = torch.nn.Parameter(torch.randn(vocabulary, hidden, dtype=kind))
        self.factor = hidden**0.5

    def forward(self, tokens):
        tokens = tokens.contiguous()
        hidden = self.table.shape[1]
        out = torch.empty(*tokens.shape, hidden, dtype=self.table.dtype, device=tokens.device)
        block = min(2048, triton.next_power_of_2(hidden))
        gather[(tokens.numel(), triton.cdiv(hidden, block))](
            tokens, self.table, out, hidden, self.factor, BLOCK=block
        )
        return out
