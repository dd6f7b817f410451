"""Convolution, GELU and the mean in one kernel: what is averaged is never written. Each program sums a part of one image,
and a last kernel adds the parts in a fixed order.

With channels last the eight channels of neighbouring columns are one run of memory: a tile of patches is an overlapping
matrix, which the tensor memory accelerator reads as it stands. A program walks down the rows, and each row is read once
for the three rows of results that need it. In a row the products whose sums are finished come last: where sums are read
while other products are under way, the compiler makes the tensor cores wait after each instruction.
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


def arranged(x, weight):
    """Rows of the result are patches: four neighbours with all channels lie side by side, so that
    patches are rows of a matrix that overlap, and are never copied."""
    batch, inputs, height, width = x.shape
    outputs = weight.shape[0]
    area = height * width
    last = x.new_empty((batch * area + 4) * inputs)
    channels_last[(triton.cdiv(area, 512), batch)](
        x, last, area, x.numel(), C=inputs, BLOCK=512, num_warps=4
    )
    taps = x.new_empty(3, outputs, 4 * inputs)
    pack_taps[(3,)](weight, taps, C=inputs, OUTPUTS=outputs, num_warps=4)
    patches = last.as_strided((batch * area, 4 * inputs), (inputs, 1))
    return TensorDescriptor.from_tensor(patches, [64, 4 * inputs]), taps


def tile(arguments):
    """Have the accelerator read tiles of as many positions as the configuration says."""
    arguments["x"].block_shape = [arguments["BP"], arguments["DEEP"]]


def configurations(*choices):
    return [
        triton.Config({"BP": block, "ROWS": rows}, num_warps=warps, num_stages=stages, pre_hook=tile)
        for block, rows, warps, stages in choices
    ]


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


@triton.autotune(configs=configurations(
    (64, 32, 4, 3), (64, 32, 4, 2), (128, 32, 8, 3), (64, 64, 4, 3), (64, 128, 4, 2), (128, 64, 8, 2)
), key=[])
@triton.jit
def sum_parts(
    x, taps, bias, sums, height, width, strips,
    DEEP: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr,
):
    image = tl.program_id(1)
    across = tl.cdiv(width - 2, BP)
    left = tl.program_id(0) % across * BP
    first = tl.program_id(0) // across * ROWS
    column = left + tl.arange(0, BP)
    co = tl.arange(0, OUTPUTS)
    place = taps + co[:, None] * DEEP + tl.arange(0, DEEP)[None, :]
    top = tl.load(place)
    middle = tl.load(place + OUTPUTS * DEEP)
    bottom = tl.load(place + 2 * OUTPUTS * DEEP)
    shift = tl.load(bias + co)[:, None]
    collected = tl.zeros((OUTPUTS, BP), tl.float32)
    older = tl.zeros((OUTPUTS, BP), tl.float32)
    newer = tl.zeros((OUTPUTS, BP), tl.float32)
    for row in range(first - 2, tl.minimum(first + ROWS, height - 2)):
        v = x.load([(image * height + row + 2) * width + left, 0])
        between = tl.dot(middle, v.T, newer, input_precision="tf32")
        newer = tl.dot(top, v.T, input_precision="tf32")
        done = tl.dot(bottom, v.T, older, input_precision="tf32")
        older = between
        # What the two rows before the first one add is forgotten.
        collected = collected * tl.where(row > first, 1.0, 0.0) + gelu(done + shift)
    part = tl.sum(tl.where((column < width - 2)[None, :], collected, 0.0), 1)
    out = sums + image * strips * OUTPUTS + co
    tl.store(out + tl.program_id(0) * OUTPUTS, part)
    # There is room for the parts of the smallest tiles: the first programs leave zeros where no other goes.
    rest = tl.program_id(0) + tl.num_programs(0)
    while rest < strips:
        tl.store(out + rest * OUTPUTS, tl.zeros((OUTPUTS,), tl.float32))
        rest += tl.num_programs(0)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        batch, inputs, height, width = x.shape
        patches, taps = arranged(x.contiguous(), self.conv.weight.contiguous())
        outputs = taps.shape[1]
        strips = triton.cdiv(width - 2, 64) * triton.cdiv(height - 2, 32)
        sums = x.new_empty(batch, strips, outputs)

        def grid(meta):
            return (triton.cdiv(width - 2, meta["BP"]) * triton.cdiv(height - 2, meta["ROWS"]), batch)

        sum_parts[grid](
            patches, taps, self.conv.bias, sums, height, width, strips, DEEP=4 * inputs, OUTPUTS=outputs
        )
        y = x.new_empty(batch, outputs)
        add_strips[(batch,)](
            sums, y, strips, 1.0 / ((height - 2) * (width - 2)),
            OUTPUTS=outputs, ROWS=triton.next_power_of_2(strips), num_warps=4,
        )
        return y
