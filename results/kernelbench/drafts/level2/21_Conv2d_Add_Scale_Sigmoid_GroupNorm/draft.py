"""The convolution is made twice and stored once: its 72 taps cost less than writing and reading it. The first pass keeps
sums alone, of the activated values less one half, which are hyperbolic tangents of half the value; the second writes what
is normalised.

Against the program before: in the second pass the tiles of a row overlap rather than reach beyond it, so that no column
is masked, and the sizes are constants, by which the compiler sees that two neighbours may be written at once. (The tensor
memory accelerator cannot write these rows: their starts are not all multiples of 16 bytes.) The batch may go in parts
(PARTS), so that what is put in order is read from the second-level cache, twice. Each pass has sizes of its own, fixed by
measuring beforehand. What is not wanted is masked rather than branched over: the compiler does not pipeline products
whose sums are used in a branch.

With channels last the eight channels of neighbouring columns are one run of memory: a tile of patches is an overlapping
matrix, which the tensor memory accelerator reads as it stands. A program walks down the rows, and each row is read once
for the three rows of results that need it. In a row the products whose sums are finished come last: where sums are read
while other products are under way, the compiler makes the tensor cores wait after each instruction.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {"SUM_BP": 64, "SUM_ROWS": 64, "SUM_WARPS": 4, "SUM_STAGES": 2, "SUM_REGISTERS": 0, "BP": 64, "ROWS": 64, "WARPS": 4, "STAGES": 2, "REGISTERS": 0, "STREAM": False, "PARTS": 1, "FIRST_BLOCK": 512, "FIRST_WARPS": 4}


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


@triton.jit
def sum_parts(
    x, taps, bias, extra, scale, sums, height, width,
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
    to = sums + (image * tl.num_programs(0) + tl.program_id(0)) * 2 * OUTPUTS + co
    tl.store(to, 0.5 * tl.sum(tl.where(real, collected, 0.0), 0))
    tl.store(to + OUTPUTS, 0.25 * tl.sum(tl.where(real, squares, 0.0), 0))


@triton.jit
def normalise(
    x, taps, bias, extra, scale, affine, y, H: tl.constexpr, W: tl.constexpr,
    DEEP: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr, STREAM: tl.constexpr,
):
    image = tl.program_id(1)
    # The last tile of a row begins earlier, and makes some results again.
    ACROSS: tl.constexpr = (W - 3) // BP + 1
    left = tl.maximum(tl.minimum(tl.program_id(0) % ACROSS * BP, W - 2 - BP), 0)
    first = tl.program_id(0) // ACROSS * ROWS
    column = tl.arange(0, BP)
    co = tl.arange(0, OUTPUTS)
    plane = (image * OUTPUTS + co).to(tl.int64) * ((H - 2) * (W - 2))
    place = taps + co[None, :] * DEEP + tl.arange(0, DEEP)[:, None]
    top = tl.load(place)
    middle = tl.load(place + OUTPUTS * DEEP)
    bottom = tl.load(place + 2 * OUTPUTS * DEEP)
    factor = 0.5 * tl.load(scale + co)[None, :]
    shift = (tl.load(bias + co) + tl.load(extra + co))[None, :] * factor
    grow = 0.5 * tl.load(affine + image * 2 * OUTPUTS + co)[None, :]
    move = tl.load(affine + image * 2 * OUTPUTS + OUTPUTS + co)[None, :] + grow
    older = tl.zeros((BP, OUTPUTS), tl.float32)
    newer = tl.zeros((BP, OUTPUTS), tl.float32)
    for row in range(first - 2, tl.minimum(first + ROWS, H - 2)):
        v = x.load([(image * H + row + 2) * W + left, 0])
        between = tl.dot(v, middle, newer, input_precision="tf32")
        newer = tl.dot(v, top, input_precision="tf32")
        done = tl.dot(v, bottom, older, input_precision="tf32")
        older = between
        done = tanh(done * factor + shift) * grow + move
        at = row * (W - 2) + left
        if W % 2 == 0:
            at = tl.multiple_of(at, 2)
        kept = row >= first
        if W - 2 < BP:
            kept = kept & (left + column < W - 2)[:, None]
        if STREAM:
            tl.store(y + plane[None, :] + (at + column)[:, None], done, mask=kept, cache_modifier=".cs")
        else:
            tl.store(y + plane[None, :] + (at + column)[:, None], done, mask=kept)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.scale = torch.nn.Parameter(torch.randn(scale_shape))
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = x.contiguous()
        batch, inputs, height, width = x.shape
        weight = self.conv.weight.contiguous()
        outputs = weight.shape[0]
        norm = self.group_norm
        area = height * width
        some, count = CONFIG["FIRST_BLOCK"], triton.cdiv(batch, CONFIG["PARTS"])
        taps = x.new_empty(3, outputs, 4 * inputs)
        pack_taps[(3,)](weight, taps, C=inputs, OUTPUTS=outputs, num_warps=4)
        strips = triton.cdiv(width - 2, CONFIG["SUM_BP"]) * triton.cdiv(height - 2, CONFIG["SUM_ROWS"])
        block = CONFIG["BP"]
        across = triton.cdiv(width - 2, block)
        last = x.new_empty((count * area + 4) * inputs)
        sums = x.new_empty(count, strips, 2, outputs)
        affine = x.new_empty(count, 2, outputs)
        y = x.new_empty(batch, outputs, height - 2, width - 2)
        size = (height - 2) * (width - 2) * (outputs // norm.num_groups)
        factors = (taps, self.conv.bias, self.bias, self.scale)
        options = {name: {"maxnreg": CONFIG[name]} if CONFIG[name] else {} for name in ("SUM_REGISTERS", "REGISTERS")}
        for first in range(0, batch, count):
            part, result = x[first:first + count], y[first:first + count]
            images = part.shape[0]
            channels_last[(triton.cdiv(area, some), images)](
                part, last, area, part.numel(), C=inputs, BLOCK=some, num_warps=CONFIG["FIRST_WARPS"]
            )
            # Four neighbours with all channels lie side by side: patches are rows of a matrix that overlap.
            patches = last.as_strided((images * area, 4 * inputs), (inputs, 1))
            sum_parts[(strips, images)](
                TensorDescriptor.from_tensor(patches, [CONFIG["SUM_BP"], 4 * inputs]), *factors, sums, height, width,
                DEEP=4 * inputs, OUTPUTS=outputs, BP=CONFIG["SUM_BP"], ROWS=CONFIG["SUM_ROWS"],
                num_warps=CONFIG["SUM_WARPS"], num_stages=CONFIG["SUM_STAGES"], **options["SUM_REGISTERS"],
            )
            finish_statistics[(images,)](
                sums, norm.weight, norm.bias, affine, strips, float(size), norm.eps,
                OUTPUTS=outputs, GROUPS=norm.num_groups, ROWS=triton.next_power_of_2(strips), num_warps=4,
            )
            normalise[(across * triton.cdiv(height - 2, CONFIG["ROWS"]), images)](
                TensorDescriptor.from_tensor(patches, [block, 4 * inputs]), *factors, affine, result, H=height, W=width,
                DEEP=4 * inputs, OUTPUTS=outputs, BP=block, ROWS=CONFIG["ROWS"], STREAM=CONFIG["STREAM"],
                num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"], **options["REGISTERS"],
            )
        return y
