"""The mean of a group norm needs each channel's mean and each group's variance, and no volume.

One kernel makes the convolution, as products with rows of taps, and keeps mean and squared deviations
per part and channel; another merges them into the one number per sample.

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
def measure_parts(
    x, taps, bias, found, depth, height, width,
    OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, BP: tl.constexpr, PLANES: tl.constexpr,
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
    # Welford's running mean and squared deviations, for each position by itself.
    mean = nothing
    squares = nothing
    count = 0.0
    for i in range(PLANES + 2):
        at = ((image * depth + first + i) * height) * width + start
        upper = x.load([at, 0])
        centre = x.load([at + width, 0])
        lower = x.load([at + 2 * width, 0])
        done = three_rows(upper, centre, lower, back, older)
        older = three_rows(upper, centre, lower, middle, newer)
        newer = three_rows(upper, centre, lower, front, nothing)
        counts = ((i >= 2) & (first + i < depth)).to(tl.float32)
        count += counts
        gap = (done - mean) * counts
        mean += gap / tl.maximum(count, 1.0)
        squares += gap * (done - mean)
    kept = there[:, None]
    positions = tl.sum(there.to(tl.float32), 0)
    centre = tl.sum(tl.where(kept, mean, 0.0), 0) / tl.maximum(positions, 1.0)
    gap = tl.where(kept, mean - centre[None, :], 0.0)
    square = tl.sum(tl.where(kept, squares, 0.0) + gap * gap * count, 0)
    out = found + (image * tl.num_programs(0) + tl.program_id(0)) * 3 * COLUMNS + co
    tl.store(out, centre + tl.load(bias + co, mask=co < OUTPUTS, other=0.0))
    tl.store(out + COLUMNS, square)
    tl.store(out + 2 * COLUMNS, tl.zeros((COLUMNS,), tl.float32) + positions * count)


@triton.jit
def merge_strips(
    found, gamma, beta, y, strips, eps,
    OUTPUTS: tl.constexpr, EACH: tl.constexpr, ROWS: tl.constexpr, STRIPS: tl.constexpr,
):
    image = tl.program_id(0)
    co = tl.arange(0, ROWS)
    strip = tl.arange(0, STRIPS)[:, None]
    at = found + (image * strips + strip) * 3 * ROWS + co[None, :]
    inside = strip < strips
    means = tl.load(at, mask=inside, other=0.0)
    squares = tl.load(at + ROWS, mask=inside, other=0.0)
    counts = tl.load(at + 2 * ROWS, mask=inside, other=0.0)
    count = tl.sum(counts, 0)
    mean = tl.sum(means * counts, 0) / count
    gap = means - mean[None, :]
    square = tl.sum(squares + counts * gap * gap, 0)
    # Channels of one group see each other through a mask: groups need not be powers of two.
    group = co // EACH
    channel = co < OUTPUTS
    same = (group[:, None] == group[None, :]) & channel[None, :]
    centre = tl.sum(tl.where(same, mean[None, :], 0.0), 1) / EACH
    off = mean[None, :] - centre[:, None]
    spread = tl.sum(tl.where(same, square[None, :] / count[None, :] + off * off, 0.0), 1) / EACH
    g = tl.load(gamma + co, mask=channel, other=0.0)
    b = tl.load(beta + co, mask=channel, other=0.0)
    value = (mean - centre) / tl.sqrt(spread + eps) * g + b
    tl.store(y + image, tl.sum(tl.where(channel, value, 0.0), 0) / OUTPUTS)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups):
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        batch, inputs, depth, height, width = x.shape
        weight = self.conv.weight.contiguous()
        outputs = weight.shape[0]
        block, planes = 128, 11
        patches, taps = arranged(x.contiguous(), weight, block)
        columns = taps.shape[1]
        parts = triton.cdiv((height - 2) * width, block) * triton.cdiv(depth - 2, planes)
        found = x.new_empty(batch, parts, 3, columns)
        measure_parts[(parts, batch)](
            patches, taps, self.conv.bias, found, depth, height, width,
            OUTPUTS=outputs, COLUMNS=columns, BP=block, PLANES=planes, num_warps=4, num_stages=2,
        )
        y = x.new_empty(batch)
        norm = self.group_norm
        merge_strips[(batch,)](
            found, norm.weight, norm.bias, y, parts, norm.eps,
            OUTPUTS=outputs, EACH=outputs // norm.num_groups, ROWS=columns,
            STRIPS=triton.next_power_of_2(parts), num_warps=4,
        )
        return y
