"""The sigmoid from two instructions of the special function unit, written in PTX."""

import torch
import triton
import triton.language as tl


@triton.jit
def fast_sigmoid(v):
    scaled = v * -1.4426950408889634
    return tl.inline_asm_elementwise(
        """
        {
        .reg .f32 power, sum;
        ex2.approx.ftz.f32 power, $1;
        add.f32 sum, power, 0f3F800000;
        rcp.approx.ftz.f32 $0, sum;
        }
        """,
        "=f,f",
        [scaled],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )


@triton.jit
def silu_and_mul(x, y, count, width, BLOCK: tl.constexpr):
    flat = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = flat < count
    row = flat // width
    start = x + flat + row * width
    gate = tl.load(start, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(start + width, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + flat, gate * fast_sigmoid(gate) * up, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, width = x.shape[0], x.shape[1] // 2
        y = torch.empty(rows, width, dtype=x.dtype, device=x.device)
        count = rows * width
        silu_and_mul[(triton.cdiv(count, 1024),)](x, y, count, width, BLOCK=1024)
        return y
