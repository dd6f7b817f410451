"""Convolution, GELU and the mean in one kernel: what is averaged is never written. Each program sums a part of one image,
and a last kernel adds the parts in a fixed order.

Against the program before: three rows make one turn of the loop (TURN), so that sums stay in their registers, where
one instruction in eight moved them; neighbouring columns may share one sum (PAIRS); the batch may go in parts (PARTS), so
that what is put in order stays in the second-level cache until it is read; all sizes are fixed by measuring beforehand.

With channels last the eight channels of neighbouring columns are one run of memory: a tile of patches is an overlapping
matrix, which the tensor memory accelerator reads as it stands. A program walks down the rows, and each row is read once
for the three rows of results that need it. In a row the products whose sums are finished come last: where sums are read
while other products are under way, the compiler makes the tensor cores wait after each instruction.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {'BP': 64, 'ROWS': 127, 'WARPS': 4, 'STAGES': 2, 'REGISTERS': 0, 'PAIRS': True, 'TURN': 3, 'PARTS': 1, 'FIRST_BLOCK': 512, 'FIRST_WARPS': 4}


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def channels_last(x, y, area, total, C: tl.constexpr, BLOCK: tl.constexpr):
    """Channels side by side, and zeros after the last position."""
    image = tl.program_id(1).to(tl.int64) * C * area
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    v = tl.load(x + image + c[:, None] * area + p[None, :], mask=(p < area)[None, :], other=0.0)
    tl.store(y + image + p[:, None] * C + c[None, :], tl.trans(rounded(v)), mask=(p < area)[:, None])
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):
        tl.store(y + total + tl.arange(0, 4 * C), tl.zeros((4 * C,), tl.float32))


@triton.jit
def pack_taps(weight, taps, C: tl.constexpr, OUTPUTS: tl.constexpr):
    """taps[row, output, column * C + input]; there is a fourth column of zeros."""
    row = tl.program_id(0)
    co = tl.arange(0, OUTPUTS)[:, None]
    k = tl.arange(0, 4 * C)[None, :]
    v = tl.load(weight + (co * C + k % C) * 9 + row * 3 + k // C, mask=k < 3 * C, other=0.0)
    tl.store(taps + (row * OUTPUTS + co) * 4 * C + k, rounded(v))


@triton.jit
def power_of_two(v):
    """In one instruction; what is too small for a normal number is zero."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def gelu(v):
    """x times the normal distribution function, whose tail is two to the power of a polynomial: right to 5e-7."""
    z = tl.abs(v)
    p = -1.0000376 + z * (-1.1507878 + z * (-0.45999265 + z * (-0.051827167 + z * (0.0070844606 - z * 0.00047329394))))
    return tl.maximum(v, 0.0) - z * power_of_two(p)


@triton.jit
def add_strips(sums, y, strips, factor, OUTPUTS: tl.constexpr, ROWS: tl.constexpr):
    image = tl.program_id(0)
    co = tl.arange(0, OUTPUTS)[None, :]
    row = tl.arange(0, ROWS)[:, None]
    v = tl.load(sums + (image * strips + row) * OUTPUTS + co, mask=row < strips, other=0.0)
    tl.store(y + image * OUTPUTS + tl.arange(0, OUTPUTS), tl.sum(v, 0) * factor)


@triton.jit
def shrink(v, PAIRS: tl.constexpr):
    """Neighbouring columns added."""
    if PAIRS:
        even, odd = tl.split(tl.reshape(v, (v.shape[0], v.shape[1] // 2, 2)))
        return even + odd
    else:
        return v


@triton.jit
def sum_parts(
    x, taps, bias, sums, height, width,
    DEEP: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr,
    TURN: tl.constexpr,
):
    image = tl.program_id(1)
    across = tl.cdiv(width - 2, BP)
    left = tl.program_id(0) % across * BP
    first = tl.program_id(0) // across * ROWS
    co = tl.arange(0, OUTPUTS)
    place = taps + co[:, None] * DEEP + tl.arange(0, DEEP)[None, :]
    top = tl.load(place)
    middle = tl.load(place + OUTPUTS * DEEP)
    bottom = tl.load(place + 2 * OUTPUTS * DEEP)
    shift = tl.load(bias + co)[:, None]
    EACH: tl.constexpr = 2 if PAIRS else 1
    collected = tl.zeros((OUTPUTS, BP // EACH), tl.float32)
    start = image * height * width + left
    end = tl.minimum(first + ROWS, height - 2)
    older = tl.zeros((OUTPUTS, BP), tl.float32)
    newer = tl.zeros((OUTPUTS, BP), tl.float32)
    if TURN == 3:
        # Three rows in a turn: the sums change places and are back where they were, without a move. What is made
        # before the first row and after the last one, which comes again, is left out.
        for row in range(first - 2, end, 3):
            v = x.load([start + (row + 2) * width, 0])
            newer = tl.dot(middle, v.T, newer, input_precision="tf32")
            third = tl.dot(top, v.T, input_precision="tf32")
            older = tl.dot(bottom, v.T, older, input_precision="tf32")
            collected += tl.where(row >= first, 1.0, 0.0) * shrink(gelu(older + shift), PAIRS)
            v = x.load([start + tl.minimum(row + 3, height - 1) * width, 0])
            third = tl.dot(middle, v.T, third, input_precision="tf32")
            older = tl.dot(top, v.T, input_precision="tf32")
            newer = tl.dot(bottom, v.T, newer, input_precision="tf32")
            wanted = (row + 1 >= first) & (row + 1 < end)
            collected += tl.where(wanted, 1.0, 0.0) * shrink(gelu(newer + shift), PAIRS)
            v = x.load([start + tl.minimum(row + 4, height - 1) * width, 0])
            older = tl.dot(middle, v.T, older, input_precision="tf32")
            newer = tl.dot(top, v.T, input_precision="tf32")
            third = tl.dot(bottom, v.T, third, input_precision="tf32")
            collected += tl.where(row + 2 < end, 1.0, 0.0) * shrink(gelu(third + shift), PAIRS)
    else:
        for row in range(first - 2, end):
            v = x.load([start + (row + 2) * width, 0])
            between = tl.dot(middle, v.T, newer, input_precision="tf32")
            newer = tl.dot(top, v.T, input_precision="tf32")
            done = tl.dot(bottom, v.T, older, input_precision="tf32")
            older = between
            collected = collected * tl.where(row > first, 1.0, 0.0) + shrink(gelu(done + shift), PAIRS)
    column = left + EACH * tl.arange(0, BP // EACH)
    part = tl.sum(tl.where((column < width - 2)[None, :], collected, 0.0), 1)
    tl.store(sums + (image * tl.num_programs(0) + tl.program_id(0)) * OUTPUTS + co, part)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = x.contiguous()
        batch, inputs, height, width = x.shape
        weight = self.conv.weight.contiguous()
        outputs = weight.shape[0]
        area = height * width
        block, rows, some = CONFIG["BP"], CONFIG["ROWS"], CONFIG["FIRST_BLOCK"]
        taps = x.new_empty(3, outputs, 4 * inputs)
        pack_taps[(3,)](weight, taps, C=inputs, OUTPUTS=outputs, num_warps=4)
        strips = triton.cdiv(width - 2, block) * triton.cdiv(height - 2, rows)
        sums = x.new_empty(batch, strips, outputs)
        count = triton.cdiv(batch, CONFIG["PARTS"])
        last = x.new_empty((count * area + 4) * inputs)
        options = {"maxnreg": CONFIG["REGISTERS"]} if CONFIG["REGISTERS"] else {}
        for first in range(0, batch, count):
            part = x[first:first + count]
            images = part.shape[0]
            channels_last[(triton.cdiv(area, some), images)](
                part, last, area, part.numel(), C=inputs, BLOCK=some, num_warps=CONFIG["FIRST_WARPS"]
            )
            # Four neighbours with all channels lie side by side: patches are rows of a matrix that overlap.
            patches = last.as_strided((images * area, 4 * inputs), (inputs, 1))
            sum_parts[(strips, images)](
                TensorDescriptor.from_tensor(patches, [block, 4 * inputs]), taps, self.conv.bias, sums[first:],
                height, width, DEEP=4 * inputs, OUTPUTS=outputs, BP=block, ROWS=rows,
                # A pair of columns exists as a whole, or not at all.
                PAIRS=CONFIG["PAIRS"] and width % 2 == 0, TURN=CONFIG["TURN"],
                num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"], **options,
            )
        y = x.new_empty(batch, outputs)
        add_strips[(batch,)](
            sums, y, strips, 1.0 / ((height - 2) * (width - 2)),
            OUTPUTS=outputs, ROWS=triton.next_power_of_2(strips), num_warps=4,
        )
        return y
