"""Baseline: one program per token looks for the largest value in a first pass, and rounds in a
second; the scale comes from the exponent bits."""

import torch
import triton
import triton.language as tl


@triton.jit
def quantise(x, values, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + c, mask=c < columns, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(v))
    bits = tl.max(largest, 0).to(tl.int32, bitcast=True)
    # At most 1.75 * 2^e becomes at most 448 = 1.75 * 2^8; a larger mantissa needs one step more.
    exponent = (bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000).to(tl.int32)
    scale = tl.where(bits == 0, 1.0, (exponent << 23).to(tl.float32, bitcast=True))
    tl.store(scales + row, scale)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + c, mask=c < columns, other=0.0).to(tl.float32)
        rounded = (v / scale).to(tl.float8e4nv).to(tl.uint8, bitcast=True)
        tl.store(values + row * columns + c, rounded, mask=c < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        values = torch.empty(rows, columns, dtype=torch.uint8, device=x.device)
        scales = torch.empty(rows, 1, dtype=torch.float32, device=x.device)
        quantise[(rows,)](x, values, scales, columns, BLOCK=1024, num_warps=4)
        return values, scales
