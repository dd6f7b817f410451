"""The library's transposed convolution with channels last; statistics of its ReLU in one pass, and
all the rest in the pass that puts channels first."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def channels_last(x, y, volume, C: tl.constexpr, BLOCK: tl.constexpr):
    """Channels side by side: tensor cores take TF32 operands along the summed dimension alone."""
    image = tl.program_id(1).to(tl.int64) * C * volume
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    v = tl.load(x + image + c[:, None] * volume + p[None, :], mask=(p < volume)[None, :], other=0.0)
    tl.store(y + image + p[:, None] * C + c[None, :], tl.trans(v), mask=(p < volume)[:, None])


@triton.jit
def measure_channels(v, found, volume, C: tl.constexpr, BP: tl.constexpr, BLOCK: tl.constexpr):
    """Mean and squared deviations of BP positions of one image, for each channel."""
    tile = tl.program_id(0)
    start = v + tl.program_id(1).to(tl.int64) * C * volume
    c = tl.arange(0, C)
    shift = tl.maximum(tl.load(start + tile * BP * C + c), 0.0)[None, :]
    total = tl.zeros((BLOCK, C), tl.float32)
    squares = tl.zeros((BLOCK, C), tl.float32)
    for first in range(0, BP, BLOCK):
        p = tile * BP + first + tl.arange(0, BLOCK)
        inside = (p < volume)[:, None]
        t = tl.load(start + p[:, None] * C + c[None, :], mask=inside, other=0.0)
        t = tl.where(inside, tl.maximum(t, 0.0) - shift, 0.0)
        total += t
        squares += t * t
    count = tl.minimum(volume - tile * BP, BP).to(tl.float32)
    mean = tl.sum(total, 0) / count
    out = found + (tl.program_id(1) * tl.num_programs(0) + tile) * 2 * C + c
    tl.store(out, mean + tl.sum(shift, 0))
    tl.store(out + C, tl.maximum(tl.sum(squares, 0) - mean * mean * count, 0.0))


@triton.jit
def finish_statistics(
    found, gamma, beta, affine, volume, tiles, eps,
    EACH: tl.constexpr, OUTPUTS: tl.constexpr, TILES: tl.constexpr, BP: tl.constexpr,
):
    image = tl.program_id(0)
    co = tl.program_id(1) * EACH + tl.arange(0, EACH)
    tile = tl.arange(0, TILES)[:, None]
    inside = tile < tiles
    at = found + (image * tiles + tile) * 2 * OUTPUTS + co[None, :]
    means = tl.load(at, mask=inside, other=0.0)
    squares = tl.load(at + OUTPUTS, mask=inside, other=0.0)
    counts = tl.where(inside, tl.maximum(tl.minimum(volume - tile * BP, BP), 0), 0).to(tl.float32)
    size = volume * 1.0 * EACH
    mean = tl.sum(tl.sum(means * counts, 1), 0) / size
    gap = means - mean
    variance = tl.sum(tl.sum(squares + counts * gap * gap, 1), 0) / size
    factor = tl.load(gamma + co) / tl.sqrt(variance + eps)
    tl.store(affine + (image * OUTPUTS + co) * 2, factor)
    tl.store(affine + (image * OUTPUTS + co) * 2 + 1, tl.load(beta + co) - mean * factor)


@triton.jit
def normalise(v, affine, y, volume, C: tl.constexpr, BLOCK: tl.constexpr):
    """Read with channels last, written with channels first."""
    image = tl.program_id(1).to(tl.int64) * C * volume
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    factor = tl.load(affine + (tl.program_id(1) * C + c) * 2)[None, :]
    shift = tl.load(affine + (tl.program_id(1) * C + c) * 2 + 1)[None, :]
    t = tl.load(v + image + p[:, None] * C + c[None, :], mask=(p < volume)[:, None], other=0.0)
    t = tl.maximum(t, 0.0) * factor + shift
    tl.store(y + image + c[:, None] * volume + p[None, :], tl.trans(t), mask=(p < volume)[None, :])


def with_channels_last(x):
    """The same tensor with its channels side by side, as the library's convolution wants it."""
    batch, channels = x.shape[:2]
    volume = x[0, 0].numel()
    last = x.new_empty(batch, *x.shape[2:], channels)
    channels_last[(triton.cdiv(volume, 128), batch)](
        x.contiguous(), last, volume, C=channels, BLOCK=128, num_warps=8
    )
    return last.movedim(-1, 1)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, bias=False):
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, bias=bias
        )
        self.group_norm = torch.nn.GroupNorm(num_groups=groups, num_channels=out_channels)

    def forward(self, x):
        norm = self.group_norm
        weight = self.conv_transpose.weight.contiguous(memory_format=torch.channels_last_3d)
        v = F.conv_transpose3d(with_channels_last(x), weight, self.conv_transpose.bias)
        batch, channels = v.shape[:2]
        y = x.new_empty(v.shape)
        volume = y[0, 0].numel()
        v = v.movedim(1, -1).contiguous()
        each = 512
        tiles = triton.cdiv(volume, each)
        found = x.new_empty(batch, tiles, 2, channels)
        measure_channels[(tiles, batch)](
            v, found, volume, C=channels, BP=each, BLOCK=32, num_warps=8
        )
        affine = x.new_empty(batch, channels, 2)
        finish_statistics[(batch, norm.num_groups)](
            found, norm.weight, norm.bias, affine, volume, tiles, norm.eps,
            EACH=channels // norm.num_groups, OUTPUTS=channels,
            TILES=triton.next_power_of_2(tiles), BP=each, num_warps=4,
        )
        normalise[(triton.cdiv(volume, 64), batch)](
            v, affine, y, volume, C=channels, BLOCK=64, num_warps=8
        )
        return y
