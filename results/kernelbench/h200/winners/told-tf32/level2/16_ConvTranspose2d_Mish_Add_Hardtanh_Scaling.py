"""The transposed convolution as gathered products, one set of taps for each parity of row and column.

Channels last, with a row of zeros after each image: tiles are whole rows, shifted as the taps want
them, and the tensor memory accelerator fills in zeros beside them. Even and odd columns are made from
the same positions and interleaved in registers, so that whole rows are written, once, with all that
follows done.

Against the program before: positions may be the rows of the products (SWAP), so that a thread holds what is added over
channels; where two groups of warps share a tile, the products come in two rounds (ROUNDS), since the compiler had both
groups make the same; results leave through the tensor memory accelerator (STORE), whole or in halves (PIECES); all is fixed
by measuring beforehand. Two values
share one reciprocal (SHARE). The batch may go in parts (PARTS), so that what is put in order stays in the cache.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {'SWAP': False, 'ROWS': 1, 'BK': 32, 'WARPS': 4, 'STAGES': 2, 'ROUNDS': 1, 'STORE': True, 'PIECES': 1, 'SHARE': False, 'REGISTERS': 0, 'PARTS': 1, 'FIRST_WARPS': 8}


@triton.jit
def reciprocal(v):
    """In one instruction, right to the last place."""
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def power_of_two(v):
    """In one instruction; what is too small for a normal number is zero."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


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
def tap_times(taps, here, sums, tap, k, OUTPUTS: tl.constexpr, SWAP: tl.constexpr):
    t = taps.load([tap * OUTPUTS, k])
    if SWAP:
        return tl.dot(here, t.T, sums, input_precision="tf32")
    else:
        return tl.dot(t, here.T, sums, input_precision="tf32")


@triton.jit
def pairs_of_columns(
    x, taps, line, first_tap, odd_plane, odd_row, height,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr,
    SWAP: tl.constexpr, ROUNDS: tl.constexpr,
):
    """What the transposed convolution (3 taps, step 2, padding 1) makes of some rows of the input:
    the results in even and those in odd columns, for planes and rows of one parity.

    Along each axis result 2j is tap 1 of x[j], and result 2j + 1 is tap 2 of x[j] plus tap 0 of x[j + 1].
    """
    BP: tl.constexpr = ROWS * W
    HIGH: tl.constexpr = BP if SWAP else OUTPUTS
    WIDE: tl.constexpr = OUTPUTS if SWAP else BP
    even = tl.zeros((HIGH, WIDE), tl.float32)
    odd = tl.zeros((HIGH, WIDE), tl.float32)
    CHUNKS: tl.constexpr = C // BK
    turns = (1 + odd_plane) * (1 + odd_row) * CHUNKS
    for step in range(turns):
        turn, k = step // CHUNKS, step % CHUNKS * BK
        down = turn // (1 + odd_row)
        below = turn % (1 + odd_row)
        tap = first_tap + (odd_plane - 2 * down) * 9 + (1 + odd_row - 2 * below) * 3
        at = line + down * (height + 1) + below
        here = tl.reshape(x.load([at, 0, k]), (BP, BK))
        even = tap_times(taps, here, even, tap + 1, k, OUTPUTS, SWAP)
        odd = tap_times(taps, here, odd, tap + 2, k, OUTPUTS, SWAP)
        if ROUNDS == 1:
            right = tl.reshape(x.load([at, 1, k]), (BP, BK))
            odd = tap_times(taps, right, odd, tap, k, OUTPUTS, SWAP)
    if ROUNDS == 2:
        # The compiler lets two groups of warps share a tile only if each sum grows once in a turn.
        for step in range(turns):
            turn, k = step // CHUNKS, step % CHUNKS * BK
            down = turn // (1 + odd_row)
            below = turn % (1 + odd_row)
            tap = first_tap + (odd_plane - 2 * down) * 9 + (1 + odd_row - 2 * below) * 3
            at = line + down * (height + 1) + below
            right = tl.reshape(x.load([at, 1, k]), (BP, BK))
            odd = tap_times(taps, right, odd, tap, k, OUTPUTS, SWAP)
    return even, odd


@triton.jit
def put(
    even, odd, image, plane, row, odd_row, y, results, height, volume,
    W: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
    SWAP: tl.constexpr, STORE: tl.constexpr, PIECES: tl.constexpr,
):
    """Rows of interleaved columns, all of one parity; plane is that of the result, row that before doubling."""
    BP: tl.constexpr = ROWS * W
    line = plane * height + row
    if STORE and PIECES == 2:
        # One half after the other: half the shared memory. Which half is one register or the other.
        if SWAP:
            e0, e1 = tl.split(tl.permute(tl.reshape(even, (BP, 2, OUTPUTS // 2)), (0, 2, 1)))
            o0, o1 = tl.split(tl.permute(tl.reshape(odd, (BP, 2, OUTPUTS // 2)), (0, 2, 1)))
            first = tl.permute(tl.join(e0, o0), (1, 0, 2))
            results.store([image * OUTPUTS, line, odd_row, 0], tl.reshape(first, (OUTPUTS // 2, ROWS, 1, 2 * W)))
            second = tl.permute(tl.join(e1, o1), (1, 0, 2))
            at = image * OUTPUTS + OUTPUTS // 2
            results.store([at, line, odd_row, 0], tl.reshape(second, (OUTPUTS // 2, ROWS, 1, 2 * W)))
        else:
            e0, e1 = tl.split(tl.permute(tl.reshape(even, (OUTPUTS, 2, BP // 2)), (0, 2, 1)))
            o0, o1 = tl.split(tl.permute(tl.reshape(odd, (OUTPUTS, 2, BP // 2)), (0, 2, 1)))
            if ROWS == 1:
                first = tl.reshape(tl.join(e0, o0), (OUTPUTS, 1, 1, W))
                results.store([image * OUTPUTS, line, odd_row, 0], first)
                second = tl.reshape(tl.join(e1, o1), (OUTPUTS, 1, 1, W))
                results.store([image * OUTPUTS, line, odd_row, W], second)
            else:
                first = tl.reshape(tl.join(e0, o0), (OUTPUTS, ROWS // 2, 1, 2 * W))
                results.store([image * OUTPUTS, line, odd_row, 0], first)
                second = tl.reshape(tl.join(e1, o1), (OUTPUTS, ROWS // 2, 1, 2 * W))
                results.store([image * OUTPUTS, line + ROWS // 2, odd_row, 0], second)
    else:
        v = tl.join(even, odd)
        if SWAP:
            v = tl.permute(v, (1, 0, 2))
        if STORE:
            results.store([image * OUTPUTS, line, odd_row, 0], tl.reshape(v, (OUTPUTS, ROWS, 1, 2 * W)))
        else:
            q = tl.arange(0, 2 * BP)
            to = (2 * (line + q // (2 * W)) + odd_row) * 2 * W + q % (2 * W)
            co = tl.arange(0, OUTPUTS)
            at = y + (image * OUTPUTS + co).to(tl.int64)[:, None] * volume + to[None, :]
            tl.store(at, tl.reshape(v, (OUTPUTS, 2 * BP)))


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
def padded_channels_last(x, y, height, W: tl.constexpr, C: tl.constexpr):
    """Channels side by side, and a row of zeros after each image."""
    row = tl.program_id(0)
    image = tl.program_id(1).to(tl.int64)
    p = tl.arange(0, W)
    c = tl.arange(0, C)
    at = x + (image * C + c[:, None]) * height * W + row * W + p[None, :]
    v = tl.load(at, mask=(row < height) & (p < W)[None, :], other=0.0)
    to = y + (image * (height + 1) + row) * W * C + p[:, None] * C + c[None, :]
    tl.store(to, tl.trans(rounded(v)))


@triton.jit
def transposed_mish(
    x, taps, bias, y, results, height, added, factor,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr,
    SWAP: tl.constexpr, ROUNDS: tl.constexpr, STORE: tl.constexpr, PIECES: tl.constexpr, SHARE: tl.constexpr,
):
    # The parity with the most taps goes first.
    odd_row = 1 - tl.program_id(0) % 2
    row = tl.program_id(0) // 2 * ROWS
    image = tl.program_id(1)
    line = image * (height + 1) + row
    even, odd = pairs_of_columns(
        x, taps, line, 0, 0, odd_row, height, W, C, OUTPUTS, ROWS, BK, SWAP, ROUNDS
    )
    b = tl.expand_dims(tl.load(bias + tl.arange(0, OUTPUTS)), 0 if SWAP else 1)
    even, odd = mish_of_two(even + b, odd + b, SHARE)
    even = tl.minimum(tl.maximum(even + added, -1.0), 1.0) * factor
    odd = tl.minimum(tl.maximum(odd + added, -1.0), 1.0) * factor
    put(
        even, odd, image, 0, row, odd_row, y, results, height, 4 * height * W,
        W, OUTPUTS, ROWS, SWAP, STORE, PIECES,
    )


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

    def forward(self, x):
        layer = self.conv_transpose
        batch, inputs, height, width = x.shape
        outputs = layer.weight.shape[1]
        x = x.contiguous()
        y = x.new_empty(batch, outputs, 2 * height, 2 * width)
        weight = layer.weight.contiguous()
        taps = x.new_empty(weight.numel() // inputs, inputs)
        arrange[(triton.cdiv(weight.numel(), 512),)](
            weight, taps, C=inputs, OUTPUTS=outputs, TAPS=weight[0, 0].numel(), BLOCK=512, num_warps=4
        )
        rows, bk, swap, pieces = CONFIG["ROWS"], min(CONFIG["BK"], inputs), CONFIG["SWAP"], CONFIG["PIECES"]
        while height % rows:
            rows //= 2
        if pieces == 1:
            box = [outputs, rows, 1, 2 * width]
        elif swap:
            box = [outputs // 2, rows, 1, 2 * width]
        else:
            box = [outputs, 1, 1, width] if rows == 1 else [outputs, rows // 2, 1, 2 * width]
        options = {"maxnreg": CONFIG["REGISTERS"]} if CONFIG["REGISTERS"] else {}
        count = triton.cdiv(batch, CONFIG["PARTS"])
        last = x.new_empty(count * (height + 1), width, inputs)
        for first in range(0, batch, count):
            part, result = x[first:first + count], y[first:first + count]
            images = part.shape[0]
            padded_channels_last[(height + 1, images)](
                part, last, height, W=width, C=inputs, num_warps=CONFIG["FIRST_WARPS"]
            )
            transposed_mish[(2 * (height // rows), images)](
                TensorDescriptor.from_tensor(last, [rows, width, bk]),
                TensorDescriptor.from_tensor(taps, [outputs, bk]),
                layer.bias, result,
                TensorDescriptor.from_tensor(result.view(images * outputs, height, 2, 2 * width), box),
                height, self.add_value, self.scale,
                W=width, C=inputs, OUTPUTS=outputs, ROWS=rows, BK=bk,
                SWAP=swap, ROUNDS=CONFIG["ROUNDS"], STORE=CONFIG["STORE"], PIECES=pieces, SHARE=CONFIG["SHARE"],
                num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"], **options,
            )
        return y
