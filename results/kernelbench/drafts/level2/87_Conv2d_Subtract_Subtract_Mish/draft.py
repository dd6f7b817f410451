"""The convolution as products with rows of taps, and Mish where the sums are.

Against the program before: the tiles of a row overlap rather than reach beyond it, so that no column is masked, and the
sizes are constants, by which the compiler sees that two neighbours may be written at once. (The tensor memory accelerator
cannot write these rows: their starts are not all multiples of 16 bytes.) Two values share one reciprocal (SHARE). Three
rows may make one turn of the loop (TURN), where sums stay in their registers. The batch may go in parts (PARTS), so that
what is put in order stays in the second-level cache until it is read. What is not wanted is masked rather than branched
over: the compiler does not pipeline products whose sums are used in a branch.

With channels last the eight channels of neighbouring columns are one run of memory: a tile of patches is an overlapping
matrix, which the tensor memory accelerator reads as it stands. A program walks down the rows, and each row is read once
for the three rows of results that need it. In a row the products whose sums are finished come last: where sums are read
while other products are under way, the compiler makes the tensor cores wait after each instruction.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {"BP": 64, "ROWS": 64, "WARPS": 4, "STAGES": 2, "REGISTERS": 0, "TURN": 1, "SHARE": True, "PARTS": 1, "FIRST_BLOCK": 512, "FIRST_WARPS": 4}


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
def reciprocal(v):
    """In one instruction, right to the last place."""
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def power_of_two(v):
    """In one instruction; what is too small for a normal number is zero."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def below(v):
    """(1 + e) squared plus one. Above 20 the quotient is one in any case, and two of these multiply without overflow."""
    e = power_of_two(tl.minimum(v, 20.0) * 1.4426950408889634)
    return e * (e + 2.0) + 2.0


@triton.jit
def mish(v, SHARE: tl.constexpr):
    """v times the hyperbolic tangent of log(1 + e): one less 2 over (1 + e) squared plus one."""
    if SHARE:
        a, b = tl.split(tl.reshape(v, (v.shape[0], v.shape[1] // 2, 2)))
        under_a = below(a)
        under_b = below(b)
        both = -2.0 * reciprocal(under_a * under_b)
        return tl.reshape(tl.join(a + a * (both * under_b), b + b * (both * under_a)), v.shape)
    else:
        return v - 2.0 * v * reciprocal(below(v))


@triton.jit
def put(v, row, left, image, kept, y, H: tl.constexpr, W: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr):
    plane = (image * OUTPUTS + tl.arange(0, OUTPUTS)).to(tl.int64) * ((H - 2) * (W - 2))
    at = row * (W - 2) + left
    if W % 2 == 0:
        at = tl.multiple_of(at, 2)
    at = y + plane[:, None] + (at + tl.arange(0, BP))[None, :]
    if W - 2 >= BP:
        tl.store(at, v, mask=kept)
    else:
        tl.store(at, v, mask=(left + tl.arange(0, BP) < W - 2)[None, :] & kept)


@triton.jit
def convolve_mish(
    x, taps, bias, y, subtracted, H: tl.constexpr, W: tl.constexpr,
    DEEP: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr,
    TURN: tl.constexpr, SHARE: tl.constexpr,
):
    image = tl.program_id(1)
    # The last tile of a row begins earlier, and makes some results again.
    ACROSS: tl.constexpr = (W - 3) // BP + 1
    left = tl.maximum(tl.minimum(tl.program_id(0) % ACROSS * BP, W - 2 - BP), 0)
    first = tl.program_id(0) // ACROSS * ROWS
    co = tl.arange(0, OUTPUTS)
    place = taps + co[:, None] * DEEP + tl.arange(0, DEEP)[None, :]
    top = tl.load(place)
    middle = tl.load(place + OUTPUTS * DEEP)
    bottom = tl.load(place + 2 * OUTPUTS * DEEP)
    shift = (tl.load(bias + co) - subtracted)[:, None]
    start = image * H * W + left
    end = tl.minimum(first + ROWS, H - 2)
    older = tl.zeros((OUTPUTS, BP), tl.float32)
    newer = tl.zeros((OUTPUTS, BP), tl.float32)
    if TURN == 3:
        # Three rows in a turn: the sums change places and are back where they were, without a move.
        for row in range(first - 2, end, 3):
            v = x.load([start + (row + 2) * W, 0])
            newer = tl.dot(middle, v.T, newer, input_precision="tf32")
            third = tl.dot(top, v.T, input_precision="tf32")
            older = tl.dot(bottom, v.T, older, input_precision="tf32")
            put(mish(older + shift, SHARE), row, left, image, row >= first, y, H, W, OUTPUTS, BP)
            v = x.load([start + tl.minimum(row + 3, H - 1) * W, 0])
            third = tl.dot(middle, v.T, third, input_precision="tf32")
            older = tl.dot(top, v.T, input_precision="tf32")
            newer = tl.dot(bottom, v.T, newer, input_precision="tf32")
            put(mish(newer + shift, SHARE), row + 1, left, image, (row + 1 >= first) & (row + 1 < end), y, H, W, OUTPUTS, BP)
            v = x.load([start + tl.minimum(row + 4, H - 1) * W, 0])
            older = tl.dot(middle, v.T, older, input_precision="tf32")
            newer = tl.dot(top, v.T, input_precision="tf32")
            third = tl.dot(bottom, v.T, third, input_precision="tf32")
            put(mish(third + shift, SHARE), row + 2, left, image, row + 2 < end, y, H, W, OUTPUTS, BP)
    else:
        for row in range(first - 2, end):
            v = x.load([start + (row + 2) * W, 0])
            between = tl.dot(middle, v.T, newer, input_precision="tf32")
            newer = tl.dot(top, v.T, input_precision="tf32")
            done = tl.dot(bottom, v.T, older, input_precision="tf32")
            older = between
            put(mish(done + shift, SHARE), row, left, image, row >= first, y, H, W, OUTPUTS, BP)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, subtract_value_1, subtract_value_2):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract_value_1 = subtract_value_1
        self.subtract_value_2 = subtract_value_2

    def forward(self, x):
        x = x.contiguous()
        batch, inputs, height, width = x.shape
        weight = self.conv.weight.contiguous()
        outputs = weight.shape[0]
        area = height * width
        block, rows, some = CONFIG["BP"], CONFIG["ROWS"], CONFIG["FIRST_BLOCK"]
        taps = x.new_empty(3, outputs, 4 * inputs)
        pack_taps[(3,)](weight, taps, C=inputs, OUTPUTS=outputs, num_warps=4)
        across = triton.cdiv(width - 2, block)
        strips = across * triton.cdiv(height - 2, rows)
        y = x.new_empty(batch, outputs, height - 2, width - 2)
        count = triton.cdiv(batch, CONFIG["PARTS"])
        last = x.new_empty((count * area + 4) * inputs)
        options = {"maxnreg": CONFIG["REGISTERS"]} if CONFIG["REGISTERS"] else {}
        for first in range(0, batch, count):
            part, result = x[first:first + count], y[first:first + count]
            images = part.shape[0]
            channels_last[(triton.cdiv(area, some), images)](
                part, last, area, part.numel(), C=inputs, BLOCK=some, num_warps=CONFIG["FIRST_WARPS"]
            )
            # Four neighbours with all channels lie side by side: patches are rows of a matrix that overlap.
            patches = last.as_strided((images * area, 4 * inputs), (inputs, 1))
            convolve_mish[(strips, images)](
                TensorDescriptor.from_tensor(patches, [block, 4 * inputs]), taps, self.conv.bias, result,
                self.subtract_value_1 + self.subtract_value_2, H=height, W=width,
                DEEP=4 * inputs, OUTPUTS=outputs, BP=block, ROWS=rows,
                TURN=CONFIG["TURN"], SHARE=CONFIG["SHARE"],
                num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"], **options,
            )
        return y
