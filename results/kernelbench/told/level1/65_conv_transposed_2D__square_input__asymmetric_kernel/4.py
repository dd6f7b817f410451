"""A transposed convolution straight from the images: nothing is copied, padded or put in another order first.

Positions of a line are the left operand of the products, which tensor cores take from registers, so that it may lie
in any order in memory. A program walks down the lines, and each piece of a line is read once per column of taps, for
the three lines of results that need it. The few columns beyond the last whole tile have a kernel of their own.
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
def arrange(weight, arranged, C: tl.constexpr, OUT: tl.constexpr, TAPS: tl.constexpr, BLOCK_IN: tl.constexpr):
    """[input, output, row, column] to [column, chunk of inputs, row, output, input]."""
    step = tl.program_id(0)
    column = step // (C // BLOCK_IN)
    channel = step % (C // BLOCK_IN) * BLOCK_IN + tl.arange(0, BLOCK_IN)[None, :]
    out = tl.arange(0, OUT)[:, None]
    for row in tl.static_range(3):
        value = tl.load(weight + ((channel * OUT + out) * 3 + row) * TAPS + column)
        target = arranged + ((step * 3 + row) * OUT + out) * BLOCK_IN + tl.arange(0, BLOCK_IN)[None, :]
        tl.store(target, rounded(value))


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": block, "ROWS": rows}, num_warps=warps, num_stages=stages)
        for block, warps, rows, stages in ((128, 8, 32, 2), (128, 8, 32, 3), (64, 4, 32, 3), (64, 4, 32, 2), (128, 8, 64, 2))
    ],
    key=[],
)
@triton.jit
def walk(x, arranged, y, C: tl.constexpr, OUT: tl.constexpr, H: tl.constexpr, W: tl.constexpr, TAPS: tl.constexpr,
         BEFORE: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr, MAIN: tl.constexpr, BLOCK_IN: tl.constexpr,
         BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Result (i, j) is the sum over a, b of tap (a, b) of x[i + BEFORE[0] - a, j + BEFORE[1] - b]."""
    across: tl.constexpr = MAIN // BLOCK  # tiles of the first MAIN columns
    chunks: tl.constexpr = C // BLOCK_IN
    image = tl.program_id(1).to(tl.int64)
    j = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(0) // across * ROWS
    k = tl.arange(0, BLOCK_IN)
    out = tl.arange(0, OUT)
    source = x + image * (C * H * W) + (k[:, None] * (H * W) + (j + BEFORE[1])[None, :])
    taps = arranged + out[:, None] * BLOCK_IN + k[None, :]
    target = y + image * (OUT * HIGH * WIDE) + (out[:, None] * (HIGH * WIDE) + j[None, :])
    older = tl.zeros((BLOCK, OUT), tl.float32)
    newer = tl.zeros((BLOCK, OUT), tl.float32)
    for i in range(first - 2, tl.minimum(first + ROWS, HIGH)):
        line = i + BEFORE[0]
        inside = (line >= 0) & (line < H)
        done = older
        older = newer
        newer = tl.zeros((BLOCK, OUT), tl.float32)
        for step in range(TAPS * chunks):
            b = step // chunks
            at = j + BEFORE[1] - b
            far = step % chunks * (BLOCK_IN * H * W) + line * W - b
            piece = tl.load(source + far, mask=((at >= 0) & (at < W) & inside)[None, :], other=0.0)
            piece = rounded(tl.trans(piece))
            here = taps + step * (3 * OUT * BLOCK_IN)
            done = tl.dot(piece, tl.trans(tl.load(here)), done, input_precision="tf32")
            older = tl.dot(piece, tl.trans(tl.load(here + OUT * BLOCK_IN)), older, input_precision="tf32")
            newer = tl.dot(piece, tl.trans(tl.load(here + 2 * OUT * BLOCK_IN)), newer, input_precision="tf32")
        real = (i >= first) & (j < MAIN)
        tl.store(target + i * WIDE, tl.trans(done), mask=real[None, :])


@triton.jit
def edge(x, arranged, y, C: tl.constexpr, OUT: tl.constexpr, H: tl.constexpr, W: tl.constexpr, TAPS: tl.constexpr,
         BEFORE: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr, FROM: tl.constexpr, COLUMNS: tl.constexpr,
         BLOCK: tl.constexpr, BLOCK_IN: tl.constexpr):
    """The columns from FROM on, of which there are COLUMNS at most, in some lines."""
    chunks: tl.constexpr = C // BLOCK_IN
    image = tl.program_id(1).to(tl.int64)
    m = tl.arange(0, BLOCK)
    i = tl.program_id(0) * (BLOCK // COLUMNS) + m // COLUMNS
    j = FROM + m % COLUMNS
    k = tl.arange(0, BLOCK_IN)
    out = tl.arange(0, OUT)
    line = i + BEFORE[0]
    column = j + BEFORE[1]
    source = x + image * (C * H * W) + (k[:, None] * (H * W) + (line * W + column)[None, :])
    taps = arranged + out[:, None] * BLOCK_IN + k[None, :]
    sums = tl.zeros((BLOCK, OUT), tl.float32)
    for step in range(TAPS * chunks * 3):
        a = step % 3
        b = step // 3 // chunks
        seen = (line >= a) & (line - a < H) & (column >= b) & (column - b < W)
        far = step // 3 % chunks * (BLOCK_IN * H * W) - a * W - b
        piece = rounded(tl.trans(tl.load(source + far, mask=seen[None, :], other=0.0)))
        sums = tl.dot(piece, tl.trans(tl.load(taps + step * (OUT * BLOCK_IN))), sums, input_precision="tf32")
    target = y + image * (OUT * HIGH * WIDE) + (out[:, None] * (HIGH * WIDE) + (i * WIDE + j)[None, :])
    tl.store(target, tl.trans(sums), mask=((i < HIGH) & (j < WIDE))[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=False):
        super().__init__()
        assert (kernel_size[0], stride, output_padding, groups, bias) == (3, 1, 0, 1, False)
        self.conv_transpose2d = torch.nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=False
        )

    def forward(self, x):
        x = x.contiguous()
        layer = self.conv_transpose2d
        weight = layer.weight.contiguous()
        images, c, height, width = x.shape
        out, _, taps = weight.shape[1:]
        before = layer.padding
        high, wide = height + 2 - 2 * before[0], width + taps - 1 - 2 * before[1]
        block_in = 32
        main = wide // 256 * 256
        arranged = x.new_empty(weight.numel())
        arrange[(taps * (c // block_in),)](
            weight, arranged, C=c, OUT=out, TAPS=taps, BLOCK_IN=block_in, num_warps=4
        )
        y = x.new_empty(images, out, high, wide)
        shared = dict(
            C=c, OUT=out, H=height, W=width, TAPS=taps, BEFORE=before, HIGH=high, WIDE=wide, BLOCK_IN=block_in
        )

        def grid(meta):
            return (main // meta["BLOCK"] * triton.cdiv(high, meta["ROWS"]), images)

        walk[grid](x, arranged, y, MAIN=main, **shared)
        if rest := wide - main:
            columns = triton.next_power_of_2(rest)
            edge[(triton.cdiv(high, 128 // columns), images)](
                x, arranged, y, FROM=main, COLUMNS=columns, BLOCK=128, **shared, num_warps=4, num_stages=2
            )
        return y
