"""A program goes down the depth of some rows of results. Every element is loaded once per plane and line, in pairs:
columns are added from pairs, and the element to the left of a pair comes from the same line in the cache. Lines
are added before columns, so that the element to the left is added up once for three lines."""

import torch
import triton
import triton.language as tl


@triton.jit
def plane(x, z, h, w, H: tl.constexpr, W: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Add up what the 3 x 3 windows with step 2 around rows 2 h of plane z hold."""
    column = tl.arange(0, 2 * BLOCK)[None, :]
    middle = x + (z * H + 2 * h)[:, None] * W + column
    seen = (z >= 0) & (column < W)
    above = tl.load(middle - W, mask=seen & (h > 0)[:, None], other=0.0)
    here = tl.load(middle, mask=seen & (2 * h < H)[:, None], other=0.0)
    below = tl.load(middle + W, mask=seen & (2 * h + 1 < H)[:, None], other=0.0)
    even, odd = tl.split(tl.reshape(above + here + below, (ROWS, BLOCK, 2)))
    return even + odd, odd


@triton.jit
def average(x, y, D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr,
            OW: tl.constexpr, DEEP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(2).to(tl.int64)
    x += image * D * H * W
    y += image * OD * OH * OW
    h = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    w = tl.arange(0, BLOCK)
    first = tl.program_id(1) * DEEP
    before, left_before = plane(x, 2 * first - 1, h, w, H, W, ROWS, BLOCK)
    inside = (h < OH)[:, None] & (w < OW)[None, :]
    back = tl.maximum(w - 1, 0)[None, :] + tl.zeros((ROWS, BLOCK), tl.int32)
    for d in range(first, min(first + DEEP, OD)):
        middle, left_middle = plane(x, 2 * d, h, w, H, W, ROWS, BLOCK)
        after, left_after = plane(x, tl.where(2 * d + 1 < D, 2 * d + 1, -1), h, w, H, W, ROWS, BLOCK)
        left = tl.gather(left_before + left_middle + left_after, back, 1)
        left = tl.where((w > 0)[None, :], left, 0.0)
        place = y + (d * OH + h)[:, None] * OW + w[None, :]
        tl.store(place, (before + middle + after + left) * (1.0 / 27.0), mask=inside)
        before = after
        left_before = left_after


class ModelNew(torch.nn.Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        assert (kernel_size, stride, padding) == (3, 2, 1)

    def forward(self, x):
        x = x.contiguous()
        n, c, d, h, w = x.shape
        od, oh, ow = (d - 1) // 2 + 1, (h - 1) // 2 + 1, (w - 1) // 2 + 1
        y = x.new_empty(n, c, od, oh, ow)
        rows, deep = 4, 16
        grid = (triton.cdiv(oh, rows), triton.cdiv(od, deep), n * c)
        average[grid](x, y, D=d, H=h, W=w, OD=od, OH=oh, OW=ow, DEEP=deep, ROWS=rows,
                      BLOCK=triton.next_power_of_2(ow), num_warps=4)
        return y
