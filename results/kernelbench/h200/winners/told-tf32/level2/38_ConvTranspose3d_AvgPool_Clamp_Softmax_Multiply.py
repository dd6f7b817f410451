"""The pool writes channels last, as the transposed convolution wants them: gathered products, one set
of taps for each parity of plane, row and column.

With a row of zeros after each plane, tiles are whole rows, shifted as the taps want them, and the
tensor memory accelerator fills in zeros beside them. What is clamped is bounded by the clamp, so the
softmax needs no maximum, but sums. They come from a first round that stores nothing else: making the
convolution again costs less than writing its exponentials and reading them back.

Against the program before: positions may be the rows of the products (SWAP), so that a thread holds what is added over
channels; where two groups of warps share a tile, the products come in two rounds (ROUNDS), since the compiler had both
groups make the same; results leave through the tensor memory accelerator (STORE), whole or in halves (PIECES); all is fixed
by measuring beforehand. The two
rounds have sizes of their own.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {'SUM_SWAP': False, 'SUM_ROWS': 4, 'SUM_BK': 32, 'SUM_WARPS': 4, 'SUM_STAGES': 2, 'SUM_ROUNDS': 1, 'SUM_REGISTERS': 0, 'SWAP': False, 'ROWS': 4, 'BK': 32, 'WARPS': 4, 'STAGES': 2, 'ROUNDS': 1, 'STORE': True, 'PIECES': 1, 'REGISTERS': 0, 'POOL_ROWS': 2, 'POOL_WARPS': 8}


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
def exponentials(
    x, taps, bias, y, results, depth, height, sums, factors, lowest, highest, SUMS_ALONE: tl.constexpr,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr,
    SWAP: tl.constexpr, ROUNDS: tl.constexpr, STORE: tl.constexpr, PIECES: tl.constexpr,
):
    # The parities with the most taps go first. ROWS divides the height: a tile lies in one plane.
    odd_row = 1 - tl.program_id(0) % 2
    odd_plane = 1 - tl.program_id(0) // 2 % 2
    tile = tl.program_id(0) // 4
    image = tl.program_id(1)
    plane = tile * ROWS // height
    row = tile * ROWS % height
    line = (image * (depth + 1) + plane) * (height + 1) + row
    even, odd = pairs_of_columns(
        x, taps, line, 9, odd_plane, odd_row, height, W, C, OUTPUTS, ROWS, BK, SWAP, ROUNDS
    )
    AXIS: tl.constexpr = 0 if SWAP else 1
    co = tl.arange(0, OUTPUTS)
    # Exponents of two, less that of the upper bound, which is then zero.
    b = tl.expand_dims((tl.load(bias + co) - highest) * 1.4426950408889634, AXIS)
    least = (lowest - highest) * 1.4426950408889634
    even = power_of_two(tl.minimum(tl.maximum(even * 1.4426950408889634 + b, least), 0.0))
    odd = power_of_two(tl.minimum(tl.maximum(odd * 1.4426950408889634 + b, least), 0.0))
    if SUMS_ALONE:
        total = tl.sum(even + odd, AXIS)
        tl.store(sums + (image * OUTPUTS + co) * tl.num_programs(0) + tl.program_id(0), total)
    else:
        factor = tl.expand_dims(tl.load(factors + image * OUTPUTS + co), AXIS)
        put(
            even * factor, odd * factor, image, 2 * plane + odd_plane, row, odd_row,
            y, results, height, 8 * depth * height * W, W, OUTPUTS, ROWS, SWAP, STORE, PIECES,
        )


@triton.jit
def add_sums(sums, scale, factors, channels, parts, PARTS: tl.constexpr):
    plane = tl.program_id(0)
    part = tl.arange(0, PARTS)
    total = tl.sum(tl.load(sums + plane * parts + part, mask=part < parts, other=0.0), 0)
    tl.store(factors + plane, tl.load(scale + plane % channels) / total)


@triton.jit
def pool(x, y, depth, height, W: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr):
    """Means of 2 x 2 x 2, channels last, a row of zeros after each plane and a plane after each
    image; the sizes are those of the result."""
    image = tl.program_id(1).to(tl.int64)
    line = tl.program_id(0) * ROWS + tl.arange(0, 2 * ROWS * W) // (2 * W)
    row = line % (height + 1)
    plane = line // (height + 1)
    inside = ((row < height) & (plane < depth))[None, :]
    volume = depth * height * W
    c = tl.arange(0, C)[:, None]
    start = (plane * 4 * height + row * 2) * 2 * W + tl.arange(0, 2 * ROWS * W) % (2 * W)
    at = x + (image * C + c) * 8 * volume + start[None, :]
    total = tl.zeros((C, 2 * ROWS * W), tl.float32)
    for corner in tl.static_range(4):
        step = (corner // 2 * 2 * height + corner % 2) * 2 * W
        total += tl.load(at + step, mask=inside, other=0.0)
    pairs = tl.sum(tl.reshape(total, (C, ROWS * W, 2)), 2)
    p = tl.program_id(0) * ROWS * W + tl.arange(0, ROWS * W)
    padded = (depth + 1) * (height + 1) * W
    to = y + image * C * padded + p[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(to, tl.trans(rounded(pairs * 0.125)), mask=(p < padded)[:, None])


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding,
        pool_kernel_size, clamp_min, clamp_max,
    ):
        super().__init__()
        self.avg_pool = torch.nn.AvgPool3d(pool_kernel_size)
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size,
            stride=stride, padding=padding, output_padding=output_padding,
        )
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max
        self.scale = torch.nn.Parameter(torch.ones(1, out_channels, 1, 1, 1))

    def forward(self, x):
        x = x.contiguous()
        layer = self.conv_transpose
        batch, inputs = x.shape[:2]
        depth, height, width = (size // 2 for size in x.shape[2:])
        outputs = layer.weight.shape[1]
        lines = (depth + 1) * (height + 1)
        last = x.new_empty(batch * lines, width, inputs)
        some = CONFIG["POOL_ROWS"]
        pool[(triton.cdiv(lines, some), batch)](
            x, last, depth, height, W=width, C=inputs, ROWS=some, num_warps=CONFIG["POOL_WARPS"]
        )
        weight = layer.weight.contiguous()
        taps = x.new_empty(weight.numel() // inputs, inputs)
        arrange[(triton.cdiv(weight.numel(), 512),)](
            weight, taps, C=inputs, OUTPUTS=outputs, TAPS=weight[0, 0].numel(), BLOCK=512, num_warps=4
        )
        y = x.new_empty(batch, outputs, 2 * depth, 2 * height, 2 * width)
        results = y.view(batch * outputs, 2 * depth * height, 2, 2 * width)
        factors = x.new_empty(batch, outputs)
        for alone, name in ((True, "SUM_"), (False, "")):
            rows, bk, swap = CONFIG[name + "ROWS"], min(CONFIG[name + "BK"], inputs), CONFIG[name + "SWAP"]
            pieces = CONFIG["PIECES"]
            while height % rows:
                rows //= 2
            if pieces == 1:
                box = [outputs, rows, 1, 2 * width]
            elif swap:
                box = [outputs // 2, rows, 1, 2 * width]
            else:
                box = [outputs, 1, 1, width] if rows == 1 else [outputs, rows // 2, 1, 2 * width]
            parts = 4 * depth * (height // rows)
            if alone:
                sums = x.new_empty(batch, outputs, parts)
            options = {"maxnreg": CONFIG[name + "REGISTERS"]} if CONFIG[name + "REGISTERS"] else {}
            exponentials[(parts, batch)](
                TensorDescriptor.from_tensor(last, [rows, width, bk]),
                TensorDescriptor.from_tensor(taps, [outputs, bk]),
                layer.bias, y, TensorDescriptor.from_tensor(results, box), depth, height, sums, factors,
                float(self.clamp_min), float(self.clamp_max), SUMS_ALONE=alone,
                W=width, C=inputs, OUTPUTS=outputs, ROWS=rows, BK=bk,
                SWAP=swap, ROUNDS=CONFIG[name + "ROUNDS"], STORE=CONFIG["STORE"], PIECES=pieces,
                num_warps=CONFIG[name + "WARPS"], num_stages=CONFIG[name + "STAGES"], **options,
            )
            if alone:
                add_sums[(batch * outputs,)](
                    sums, self.scale, factors, outputs, parts,
                    PARTS=triton.next_power_of_2(parts), num_warps=4,
                )
        return y
