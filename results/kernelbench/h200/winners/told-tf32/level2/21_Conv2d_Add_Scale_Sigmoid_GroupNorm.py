"""The convolution is made twice and stored once: its 72 taps cost less than writing and reading it. The first pass keeps
sums alone, of the activated values less one half, which are hyperbolic tangents of half the value; the second writes what
is normalised.

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
def tanh(v):
    """The hyperbolic tangent in one instruction, whose relative error is that of TF32."""
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


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


@triton.autotune(configs=configurations(
    (128, 32, 4, 3), (128, 32, 4, 2), (128, 64, 4, 3), (64, 64, 4, 3), (128, 32, 8, 3), (128, 128, 4, 2)
), key=[])
@triton.jit
def sum_parts(
    x, taps, bias, extra, scale, sums, height, width, strips,
    DEEP: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr,
):
    image = tl.program_id(1)
    across = tl.cdiv(width - 2, BP)
    left = tl.program_id(0) % across * BP
    first = tl.program_id(0) // across * ROWS
    column = left + tl.arange(0, BP)
    co = tl.arange(0, OUTPUTS)
    place = taps + co[None, :] * DEEP + tl.arange(0, DEEP)[:, None]
    top = tl.load(place)
    middle = tl.load(place + OUTPUTS * DEEP)
    bottom = tl.load(place + 2 * OUTPUTS * DEEP)
    factor = 0.5 * tl.load(scale + co)[None, :]
    shift = (tl.load(bias + co) + tl.load(extra + co))[None, :] * factor
    collected = tl.zeros((BP, OUTPUTS), tl.float32)
    squares = tl.zeros((BP, OUTPUTS), tl.float32)
    older = tl.zeros((BP, OUTPUTS), tl.float32)
    newer = tl.zeros((BP, OUTPUTS), tl.float32)
    for row in range(first - 2, tl.minimum(first + ROWS, height - 2)):
        v = x.load([(image * height + row + 2) * width + left, 0])
        between = tl.dot(v, middle, newer, input_precision="tf32")
        newer = tl.dot(v, top, input_precision="tf32")
        done = tl.dot(v, bottom, older, input_precision="tf32")
        older = between
        done = tanh(done * factor + shift)
        # What the two rows before the first one add is forgotten.
        further = tl.where(row > first, 1.0, 0.0)
        collected = collected * further + done
        squares = squares * further + done * done
    real = (column < width - 2)[:, None]
    out = sums + image * strips * 2 * OUTPUTS + co
    to = out + tl.program_id(0) * 2 * OUTPUTS
    tl.store(to, 0.5 * tl.sum(tl.where(real, collected, 0.0), 0))
    tl.store(to + OUTPUTS, 0.25 * tl.sum(tl.where(real, squares, 0.0), 0))
    # There is room for the parts of the smallest tiles: the first programs leave zeros where no other goes.
    rest = tl.program_id(0) + tl.num_programs(0)
    while rest < strips:
        tl.store(out + rest * 2 * OUTPUTS, tl.zeros((OUTPUTS,), tl.float32))
        tl.store(out + rest * 2 * OUTPUTS + OUTPUTS, tl.zeros((OUTPUTS,), tl.float32))
        rest += tl.num_programs(0)


@triton.autotune(configs=configurations(
    (128, 32, 4, 3), (128, 32, 4, 2), (128, 64, 4, 3), (64, 64, 4, 3), (128, 32, 8, 3), (128, 128, 4, 2)
), key=[])
@triton.jit
def normalise(
    x, taps, bias, extra, scale, affine, y, height, width,
    DEEP: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr,
):
    image = tl.program_id(1)
    across = tl.cdiv(width - 2, BP)
    left = tl.program_id(0) % across * BP
    first = tl.program_id(0) // across * ROWS
    column = left + tl.arange(0, BP)
    co = tl.arange(0, OUTPUTS)
    place = taps + co[None, :] * DEEP + tl.arange(0, DEEP)[:, None]
    top = tl.load(place)
    middle = tl.load(place + OUTPUTS * DEEP)
    bottom = tl.load(place + 2 * OUTPUTS * DEEP)
    factor = 0.5 * tl.load(scale + co)[None, :]
    shift = (tl.load(bias + co) + tl.load(extra + co))[None, :] * factor
    grow = 0.5 * tl.load(affine + image * 2 * OUTPUTS + co)[None, :]
    move = tl.load(affine + image * 2 * OUTPUTS + OUTPUTS + co)[None, :] + grow
    plane = (image * OUTPUTS + co).to(tl.int64) * (height - 2) * (width - 2)
    result = y + plane[None, :] + column[:, None]
    kept = (column < width - 2)[:, None]
    older = tl.zeros((BP, OUTPUTS), tl.float32)
    newer = tl.zeros((BP, OUTPUTS), tl.float32)
    for row in range(first - 2, tl.minimum(first + ROWS, height - 2)):
        v = x.load([(image * height + row + 2) * width + left, 0])
        between = tl.dot(v, middle, newer, input_precision="tf32")
        newer = tl.dot(v, top, input_precision="tf32")
        done = tl.dot(v, bottom, older, input_precision="tf32")
        older = between
        tl.store(result + row * (width - 2), tanh(done * factor + shift) * grow + move, mask=kept & (row >= first))


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.scale = torch.nn.Parameter(torch.randn(scale_shape))
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        batch, inputs, height, width = x.shape
        patches, taps = arranged(x.contiguous(), self.conv.weight.contiguous())
        outputs = taps.shape[1]
        norm = self.group_norm
        strips = triton.cdiv(width - 2, 64) * triton.cdiv(height - 2, 32)
        sums = x.new_empty(batch, strips, 2, outputs)
        parts = (patches, taps, self.conv.bias, self.bias, self.scale)

        def grid(meta):
            return (triton.cdiv(width - 2, meta["BP"]) * triton.cdiv(height - 2, meta["ROWS"]), batch)

        sum_parts[grid](*parts, sums, height, width, strips, DEEP=4 * inputs, OUTPUTS=outputs)
        affine = x.new_empty(batch, 2, outputs)
        size = (height - 2) * (width - 2) * (outputs // norm.num_groups)
        finish_statistics[(batch,)](
            sums, norm.weight, norm.bias, affine, strips, float(size), norm.eps,
            OUTPUTS=outputs, GROUPS=norm.num_groups, ROWS=triton.next_power_of_2(strips), num_warps=4,
        )
        y = x.new_empty(batch, outputs, height - 2, width - 2)
        normalise[grid](*parts, affine, y, height, width, DEEP=4 * inputs, OUTPUTS=outputs)
        return y
