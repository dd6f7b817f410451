"""Channels last first; then the convolution as one product with nine shifted reads, activated on
its tiles and written once.

Against the program before: a tile is a stretch of one row, and the last one of a row begins earlier rather than reach
beyond it, so that nothing is masked and no place is divided out; sizes are constants, by which the compiler sees that two
neighbours may be written at once. (The tensor memory accelerator cannot write these rows: their starts are not all
multiples of 16 bytes.) Results are activated in as many pieces as there are registers for (PIECES).
Two values share one reciprocal (SHARE): three powers and quotients for each result rather than four, which is what the
second half of the time went to. The batch may go in parts (PARTS), so that what is put in order stays in the
second-level cache until it is read.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {"BP": 128, "BK": 32, "OB": 128, "WARPS": 4, "STAGES": 3, "REGISTERS": 0, "STREAM": False, "PIECES": 1, "SHARE": True, "PARTS": 1, "FIRST_BLOCK": 128, "FIRST_WARPS": 8}


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
def mish_of_two(a, b, SHARE: tl.constexpr):
    """v times the hyperbolic tangent of log(1 + e): one less 2 over (1 + e) squared plus one."""
    under_a = below(a)
    under_b = below(b)
    if SHARE:
        both = -2.0 * reciprocal(under_a * under_b)
        return a + a * (both * under_b), b + b * (both * under_a)
    else:
        return a - 2.0 * a * reciprocal(under_a), b - 2.0 * b * reciprocal(under_b)


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def arrange(weight, taps, C: tl.constexpr, OUTPUTS: tl.constexpr, BLOCK: tl.constexpr):
    """[output, input, tap] to [tap, output, input]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < C * OUTPUTS * 9
    source = weight + at % (C * OUTPUTS) * 9 + at // (C * OUTPUTS)
    tl.store(taps + at, rounded(tl.load(source, mask=inside, other=0.0)), mask=inside)


@triton.jit
def channels_last(x, y, volume, C: tl.constexpr, BLOCK: tl.constexpr):
    """Channels side by side: tensor cores take TF32 operands along the summed dimension alone."""
    image = tl.program_id(1).to(tl.int64) * C * volume
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    v = tl.load(x + image + c[:, None] * volume + p[None, :], mask=(p < volume)[None, :], other=0.0)
    tl.store(y + image + p[:, None] * C + c[None, :], tl.trans(rounded(v)), mask=(p < volume)[:, None])


@triton.jit
def halves(v, HIGH: tl.constexpr, WIDE: tl.constexpr):
    """The left and the right half: one register or the other of each thread."""
    return tl.split(tl.permute(tl.reshape(v, (HIGH, 2, WIDE // 2)), (0, 2, 1)))


@triton.jit
def finish(
    v, row, left, outputs, y, H: tl.constexpr, W: tl.constexpr, OB: tl.constexpr, WIDE: tl.constexpr,
    BP: tl.constexpr, SHARE: tl.constexpr, STREAM: tl.constexpr,
):
    a, b = tl.split(tl.reshape(v, (OB, WIDE // 2, 2)))
    a, b = mish_of_two(a, b, SHARE)
    a, b = mish_of_two(a, b, SHARE)
    v = tl.reshape(tl.join(a, b), (OB, WIDE))
    at = row * (W - 2) + left
    if W % 2 == 0:
        at = tl.multiple_of(at, 2)
    to = y + (outputs + tl.arange(0, OB)).to(tl.int64)[:, None] * ((H - 2) * (W - 2)) + (at + tl.arange(0, WIDE))[None, :]
    if W - 2 >= BP:
        if STREAM:
            tl.store(to, v, cache_modifier=".cs")
        else:
            tl.store(to, v)
    else:
        tl.store(to, v, mask=(left + tl.arange(0, WIDE) < W - 2)[None, :])


@triton.jit
def convolve_mish_twice(
    x, taps, bias, y, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, OB: tl.constexpr, BK: tl.constexpr, BP: tl.constexpr,
    SHARE: tl.constexpr, PIECES: tl.constexpr, STREAM: tl.constexpr,
):
    image = tl.program_id(1)
    PARTS: tl.constexpr = OUTPUTS // OB
    output = tl.program_id(0) % PARTS * OB
    tile = tl.program_id(0) // PARTS
    ACROSS: tl.constexpr = (W - 3) // BP + 1
    row = tile // ACROSS
    left = tl.maximum(tl.minimum(tile % ACROSS * BP, W - 2 - BP), 0)
    start = image * H * W + row * W + left
    total = tl.zeros((OB, BP), tl.float32)
    CHUNKS: tl.constexpr = C // BK
    for step in range(9 * CHUNKS):
        tap = step // CHUNKS
        k = step % CHUNKS * BK
        v = x.load([start + tap // 3 * W + tap % 3, k])
        total = tl.dot(taps.load([tap * OUTPUTS + output, k]), v.T, total, input_precision="tf32")
    co = output + tl.arange(0, OB)
    total += tl.load(bias + co)[:, None]
    plane = image * OUTPUTS + output
    if PIECES == 1:
        finish(total, row, left, plane, y, H, W, OB, BP, BP, SHARE, STREAM)
    else:
        half = halves(total, OB, BP)
        for side in tl.static_range(2):
            at = left + side * (BP // 2)
            if PIECES == 2:
                finish(half[side], row, at, plane, y, H, W, OB, BP // 2, BP, SHARE, STREAM)
            else:
                quarter = halves(half[side], OB, BP // 2)
                for part in tl.static_range(2):
                    finish(
                        quarter[part], row, at + part * (BP // 4), plane, y, H, W, OB, BP // 4, BP, SHARE, STREAM
                    )


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
        taps = x.new_empty(9 * outputs, inputs)
        arrange[(triton.cdiv(weight.numel(), 512),)](weight, taps, C=inputs, OUTPUTS=outputs, BLOCK=512, num_warps=4)
        y = x.new_empty(batch, outputs, height - 2, width - 2)
        block, depth, some = CONFIG["BP"], min(CONFIG["BK"], inputs), CONFIG["FIRST_BLOCK"]
        many, pieces = min(CONFIG["OB"], outputs), CONFIG["PIECES"]
        across = triton.cdiv(width - 2, block)
        count = triton.cdiv(batch, CONFIG["PARTS"])
        last = x.new_empty(count * area, inputs)
        options = {"maxnreg": CONFIG["REGISTERS"]} if CONFIG["REGISTERS"] else {}
        for first in range(0, batch, count):
            part, result = x[first:first + count], y[first:first + count]
            images = part.shape[0]
            channels_last[(triton.cdiv(area, some), images)](
                part, last, area, C=inputs, BLOCK=some, num_warps=CONFIG["FIRST_WARPS"]
            )
            convolve_mish_twice[(across * (height - 2) * (outputs // many), images)](
                TensorDescriptor.from_tensor(last, [block, depth]),
                TensorDescriptor.from_tensor(taps, [many, depth]),
                self.conv.bias, result, H=height, W=width,
                C=inputs, OUTPUTS=outputs, OB=many, BK=depth, BP=block,
                SHARE=CONFIG["SHARE"], PIECES=pieces, STREAM=CONFIG["STREAM"],
                num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"], **options,
            )
        return y
