"""Rounds to even by adding and subtracting one and a half times 2^23."""

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
    # At most 127/64 * 2^e becomes at most 127; a larger mantissa needs one step more.
    exponent = (bits >> 23) - 6 + ((bits & 0x7FFFFF) > 0x7E0000).to(tl.int32)
    scale = tl.where(bits == 0, 1.0, (exponent << 23).to(tl.float32, bitcast=True))
    rounded = (v / scale + 12582912.0) - 12582912.0
    tl.store(values + row * columns + c, rounded.to(tl.int8), mask=inside)
    tl.store(scales + row, scale)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        values = torch.empty(rows, columns, dtype=torch.int8, device=x.device)
        scales = torch.empty(rows, 1, dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(columns)
        quantise[(rows,)](x, values, scales, columns, BLOCK=block, num_warps=8)
        return values, scales
