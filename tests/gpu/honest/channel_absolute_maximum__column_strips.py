"""Narrow strips of columns, each walked from top to bottom by one program."""

import torch
import triton
import triton.language as tl


@triton.jit
def absolute_maximum(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    largest = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, rows, ROWS):
        r = start + tl.arange(0, ROWS)
        at = x + r.to(tl.int64)[:, None] * columns + c[None, :]
        inside = (r < rows)[:, None] & (c < columns)[None, :]
        largest = tl.maximum(largest, tl.abs(tl.load(at, mask=inside, other=0.0).to(tl.float32)))
    tl.store(out + c, tl.max(largest, 0), mask=c < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        out = torch.empty(columns, dtype=x.dtype, device=x.device)
        absolute_maximum[(triton.cdiv(columns, 32),)](
            x, out, rows, columns, ROWS=128, COLUMNS=32, num_warps=8
        )
        return out
