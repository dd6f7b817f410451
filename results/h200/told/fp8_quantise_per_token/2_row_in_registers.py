"""The row is read once and stays in registers, and the division, by a power of two, is a product
with its reciprocal."""

import torch
import triton
import triton.language as tl


@triton.jit
def quantise(x, values, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    inside = c < columns
    v = tl.load(x + row * columns + c, mask=inside, other=0.0).to(tl.float32)
    bits = tl.max(tl.abs(v), 0).to(tl.int32, bitcast=True)
    exponent = (bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000).to(tl.int32)
    # 127 is the exponent of 1, the scale of nothing but zeros; 1 that of the least normal number.
    exponent = tl.where(bits == 0, 127, tl.maximum(exponent, 1))
    scale = (exponent << 23).to(tl.float32, bitcast=True)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    rounded = (v * inverse).to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    tl.store(values + row * columns + c, rounded, mask=inside)
    tl.store(scales + row, scale)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        values = torch.empty(rows, columns, dtype=torch.uint8, device=x.device)
        scales = torch.empty(rows, 1, dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(columns)
        quantise[(rows,)](x, values, scales, columns, BLOCK=block, num_warps=8)
        return values, scales
