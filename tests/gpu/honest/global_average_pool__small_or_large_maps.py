"""Many small maps per program, or one large map in several steps: constexpr picks the shape."""

import torch
import triton
import triton.language as tl


@triton.jit
def average(x, y, maps, area, MAPS: tl.constexpr, BLOCK: tl.constexpr, ONE_STEP: tl.constexpr):
    m = tl.program_id(0) * MAPS + tl.arange(0, MAPS)
    c = tl.arange(0, BLOCK)
    at = x + m.to(tl.int64)[:, None] * area + c[None, :]
    inside = (m < maps)[:, None]
    if ONE_STEP:
        total = tl.load(at, mask=inside & (c < area)[None, :], other=0.0).to(tl.float32)
    else:
        total = tl.zeros((MAPS, BLOCK), tl.float32)
        for start in range(0, area, BLOCK):
            left = inside & (start + c < area)[None, :]
            total += tl.load(at + start, mask=left, other=0.0).to(tl.float32)
    tl.store(y + m, (tl.sum(total, 1) / area).to(y.dtype.element_ty), mask=m < maps)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        batch, channels, height, width = x.shape
        maps, area = batch * channels, height * width
        y = torch.empty(batch, channels, dtype=x.dtype, device=x.device)
        block = min(triton.next_power_of_2(area), 1024)
        per_program = max(1, 2048 // block)
        average[(triton.cdiv(maps, per_program),)](
            x, y, maps, area, MAPS=per_program, BLOCK=block, ONE_STEP=block >= area
        )
        return y
