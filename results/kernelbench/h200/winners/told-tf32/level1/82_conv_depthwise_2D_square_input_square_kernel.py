"""A program goes down a strip of rows, two at a time: each row of the input is read once and added to the three
rows of the result that it meets."""

import torch
import triton
import triton.language as tl


@triton.jit
def depthwise(x, weight, y, CHANNELS: tl.constexpr, H: tl.constexpr, W: tl.constexpr, OH: tl.constexpr,
              OW: tl.constexpr, STRIP: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(1)
    x += plane.to(tl.int64) * (H * W)
    y += plane.to(tl.int64) * (OH * OW)
    weight += plane % CHANNELS * 9
    w00 = tl.load(weight)
    w01 = tl.load(weight + 1)
    w02 = tl.load(weight + 2)
    w10 = tl.load(weight + 3)
    w11 = tl.load(weight + 4)
    w12 = tl.load(weight + 5)
    w20 = tl.load(weight + 6)
    w21 = tl.load(weight + 7)
    w22 = tl.load(weight + 8)
    column = tl.arange(0, BLOCK)
    top = tl.program_id(0) * STRIP
    one = tl.zeros((BLOCK,), tl.float32)  # the result of the row before, without its last row of taps
    two = tl.zeros((BLOCK,), tl.float32)  # the result of this row, with its first row of taps alone
    for row in range(top, top + STRIP + 2, 2):
        line = x + row * W + column
        here = row < H
        a = tl.load(line, mask=here & (column < W), other=0.0)
        b = tl.load(line + 1, mask=here & (column + 1 < W), other=0.0)
        c = tl.load(line + 2, mask=here & (column + 2 < W), other=0.0)
        below = row + 1 < H
        d = tl.load(line + W, mask=below & (column < W), other=0.0)
        e = tl.load(line + (W + 1), mask=below & (column + 1 < W), other=0.0)
        f = tl.load(line + (W + 2), mask=below & (column + 2 < W), other=0.0)
        first = one + w20 * a + w21 * b + w22 * c
        second = two + w10 * a + w11 * b + w12 * c + w20 * d + w21 * e + w22 * f
        place = y + (row - 2) * OW + column
        inside = (row > top) & (column < OW)
        tl.store(place, first, mask=inside & (row - 2 < OH))
        tl.store(place + OW, second, mask=inside & (row - 1 < OH))
        one = w00 * a + w01 * b + w02 * c + w10 * d + w11 * e + w12 * f
        two = w00 * d + w01 * e + w02 * f


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, kernel_size, stride=1, padding=0, bias=False):
        super().__init__()
        assert (kernel_size, stride, padding, bias) == (3, 1, 0, False)
        self.conv2d = torch.nn.Conv2d(in_channels, in_channels, 3, groups=in_channels, bias=False)

    def forward(self, x):
        x = x.contiguous()
        n, c, h, w = x.shape
        y = x.new_empty(n, c, h - 2, w - 2)
        grid = (triton.cdiv(h - 2, 64), n * c)
        depthwise[grid](x, self.conv2d.weight, y, CHANNELS=c, H=h, W=w, OH=h - 2, OW=w - 2, STRIP=64,
                        BLOCK=triton.next_power_of_2(w), num_warps=4)
        return y
