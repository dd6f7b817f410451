"""As 1.py, but with depthwise convolutions that take a third of the registers, since they waited for memory, twice as
long a step in the products of small maps, and batch norm folded into two numbers per channel. Statistics are joined by small kernels, which take less
time than a program that does so when it comes last."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def normalised(v, c, inside, scale, shift, ACT: tl.constexpr):
    factor = tl.load(scale + c, mask=inside, other=0.0)[None, :]
    v = v * factor + tl.load(shift + c, mask=inside, other=0.0)[None, :]
    if ACT != "none":
        v = tl.maximum(v, 0.0)
    if ACT == "relu6":
        v = tl.minimum(v, 6.0)
    return v


@triton.jit
def note_statistics(total, tile, tiles, c, means, squares, M, N, BM: tl.constexpr):
    """Store mean and squared deviations of a tile's columns; rows beyond the last are zero."""
    r = tile * BM + tl.arange(0, BM)
    mean = tl.sum(total, 0) / tl.minimum(M - tile * BM, BM)
    away = tl.where((r < M)[:, None], total - mean[None, :], 0.0)
    tl.store(means + c * tiles + tile, mean, mask=c < N)
    tl.store(squares + c * tiles + tile, tl.sum(away * away, 0), mask=c < N)


@triton.jit
def join_statistics(
    means, squares, weight, bias, scale, shift, M, tiles, eps, BM: tl.constexpr, BLOCK: tl.constexpr
):
    c = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    inside = t < tiles
    count = tl.where(inside, tl.minimum(M - t * BM, BM), 0).to(tl.float32)
    m = tl.load(means + c * tiles + t, mask=inside, other=0.0)
    s = tl.load(squares + c * tiles + t, mask=inside, other=0.0)
    middle = tl.sum(count * m, 0) / M
    variance = tl.sum(s + count * (m - middle) * (m - middle), 0) / M
    factor = tl.load(weight + c) / tl.sqrt(variance + eps)
    tl.store(scale + c, factor)
    tl.store(shift + c, tl.load(bias + c) - middle * factor)


@triton.jit
def first_convolution(
    x, w, y, means, squares, M, tiles, height, width, out_height, out_width,
    N: tl.constexpr, STRIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    """3 x 3 over three channels: channels first in, channels last out."""
    tile = tl.program_id(0)
    r = tile * BM + tl.arange(0, BM)
    image = r // (out_height * out_width)
    row = (r // out_width) % out_height * STRIDE - 1
    column = r % out_width * STRIDE - 1
    k = tl.arange(0, 32)
    i = row[:, None] + (k % 9 // 3)[None, :]
    j = column[:, None] + (k % 3)[None, :]
    inside = (i >= 0) & (i < height) & (j >= 0) & (j < width) & (r < M)[:, None] & (k < 27)[None, :]
    at = ((image * 3)[:, None] + (k // 9)[None, :]) * height * width + i * width + j
    v = tl.load(x + at, mask=inside, other=0.0)
    c = tl.arange(0, BN)
    weights = tl.load(
        w + c[None, :] * 27 + k[:, None], mask=(c < N)[None, :] & (k < 27)[:, None], other=0.0
    )
    total = tl.dot(v, weights, input_precision="tf32")
    tl.store(y + r[:, None] * N + c[None, :], total, mask=(r < M)[:, None] & (c < N)[None, :])
    note_statistics(total, tile, tiles, c, means, squares, M, N, BM)


@triton.jit
def pointwise(
    x, scale, shift, w, y, means, squares, M, tiles,
    K: tl.constexpr, N: tl.constexpr, ACT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    """1 x 1 of the normalised and activated input, which is never written."""
    tile = tl.program_id(0)
    r = tile * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        inside = (r < M)[:, None] & (k < K)[None, :]
        v = tl.load(x + r[:, None] * K + k[None, :], mask=inside, other=0.0)
        v = normalised(v, k, k < K, scale, shift, ACT)
        weights = tl.load(
            w + c[None, :] * K + k[:, None], mask=(c < N)[None, :] & (k < K)[:, None], other=0.0
        )
        total = tl.dot(v, weights, total, input_precision="tf32")
    total = tl.where((r < M)[:, None], total, 0.0)
    tl.store(y + r[:, None] * N + c[None, :], total, mask=(r < M)[:, None] & (c < N)[None, :])
    note_statistics(total, tile, tiles, c, means, squares, M, N, BM)


@triton.jit
def depthwise(
    x, scale, shift, w, y, means, squares, M, tiles, height, width, out_height, out_width,
    C: tl.constexpr, STRIDE: tl.constexpr, ACT: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):
    """3 x 3 per channel of the normalised and activated input, which is never written."""
    tile = tl.program_id(0)
    r = tile * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    image = r // (out_height * out_width)
    row = (r // out_width) % out_height * STRIDE - 1
    column = r % out_width * STRIDE - 1
    factor = tl.load(scale + c, mask=c < C, other=0.0)[None, :]
    offset = tl.load(shift + c, mask=c < C, other=0.0)[None, :]
    total = tl.zeros((BM, BC), tl.float32)
    for tap in range(9):
        i = row + tap // 3
        j = column + tap % 3
        there = (i >= 0) & (i < height) & (j >= 0) & (j < width) & (r < M)
        inside = there[:, None] & (c < C)[None, :]
        at = ((image * height + i) * width + j)[:, None] * C + c[None, :]
        v = tl.load(x + at, mask=inside, other=0.0) * factor + offset
        if ACT != "none":
            v = tl.maximum(v, 0.0)
        if ACT == "relu6":
            v = tl.minimum(v, 6.0)
        weight = tl.load(w + c * 9 + tap, mask=c < C, other=0.0)[None, :]
        total += tl.where(inside, v * weight, 0.0)
    tl.store(y + r[:, None] * C + c[None, :], total, mask=(r < M)[:, None] & (c < C)[None, :])
    note_statistics(total, tile, tiles, c, means, squares, M, C, BM)


@triton.jit
def average(
    x, scale, shift, y, area, C: tl.constexpr, ACT: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr
):
    image = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    r = tl.arange(0, BM)
    inside = (r < area)[:, None] & (c < C)[None, :]
    v = tl.load(x + (image * area + r)[:, None] * C + c[None, :], mask=inside, other=0.0)
    v = tl.where(inside, normalised(v, c, c < C, scale, shift, ACT), 0.0)
    tl.store(y + image * C + c, tl.sum(v, 0) / area, mask=c < C)


class Maps:
    """Raw results of a convolution, channels last, with what the batch norm after it makes of them."""

    def __init__(self, x, images, height, width, channels, tile):
        self.images, self.height, self.width, self.channels = images, height, width, channels
        self.rows = images * height * width
        self.tile, self.tiles = tile, triton.cdiv(self.rows, tile)
        self.raw = x.new_empty(self.rows, channels)
        self.notes = x.new_empty(2, channels, self.tiles)
        self.scale, self.shift = x.new_empty(2, channels)

    def normalise(self, norm, act):
        """Join the statistics of the batch; the norm and `act` are applied by whoever reads this."""
        self.act = act
        block = triton.next_power_of_2(self.tiles)
        join_statistics[(self.channels,)](
            self.notes[0], self.notes[1], norm.weight, norm.bias, self.scale, self.shift, self.rows, self.tiles, norm.eps,
            BM=self.tile, BLOCK=block, num_warps=8 if block >= 2048 else 4 if block >= 512 else 1,
        )
        return self


def after_first(x, conv):
    images, _, height, width = x.shape
    stride = conv.stride[0]
    maps = Maps(x, images, (height - 1) // stride + 1, (width - 1) // stride + 1, conv.out_channels, 128)
    first_convolution[(maps.tiles,)](
        x, conv.weight, maps.raw, maps.notes[0], maps.notes[1], maps.rows, maps.tiles,
        height, width, maps.height, maps.width,
        N=maps.channels, STRIDE=stride, BM=128, BN=max(16, triton.next_power_of_2(maps.channels)), num_warps=4,
    )
    return maps


def after_pointwise(x, conv):
    channels = conv.out_channels
    bm = 128 if x.rows > 4096 else 64
    bn = min(64, max(16, triton.next_power_of_2(channels)))
    maps = Maps(x.raw, x.images, x.height, x.width, channels, bm)
    pointwise[(maps.tiles, triton.cdiv(channels, bn))](
        x.raw, x.scale, x.shift, conv.weight, maps.raw, maps.notes[0], maps.notes[1], maps.rows, maps.tiles,
        K=x.channels, N=channels, ACT=x.act, BM=bm, BN=bn, BK=64 if bm == 64 else 32, num_warps=4, num_stages=3,
    )
    return maps


def after_depthwise(x, conv):
    stride = conv.stride[0]
    height, width = (x.height - 1) // stride + 1, (x.width - 1) // stride + 1
    bm = 32
    bc = min(64, triton.next_power_of_2(x.channels))
    maps = Maps(x.raw, x.images, height, width, x.channels, bm)
    depthwise[(maps.tiles, triton.cdiv(x.channels, bc))](
        x.raw, x.scale, x.shift, conv.weight, maps.raw, maps.notes[0], maps.notes[1], maps.rows, maps.tiles,
        x.height, x.width, height, width, C=x.channels, STRIDE=stride, ACT=x.act, BM=bm, BC=bc, num_warps=8,
    )
    return maps


def averaged(x):
    y = x.raw.new_empty(x.images, x.channels)
    area = x.height * x.width
    average[(x.images, triton.cdiv(x.channels, 64))](
        x.raw, x.scale, x.shift, y, area,
        C=x.channels, ACT=x.act, BM=triton.next_power_of_2(area), BC=64, num_warps=4,
    )
    return y


class ModelNew(torch.nn.Module):
    def __init__(self, num_classes=1000, input_channels=3, alpha=1.0):
        super().__init__()
        nn = torch.nn

        def dense(inside, outside, stride):
            return nn.Sequential(
                nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()
            )

        def separable(inside, outside, stride):
            return nn.Sequential(
                nn.Conv2d(inside, inside, 3, stride, 1, groups=inside, bias=False),
                nn.BatchNorm2d(inside),
                nn.ReLU(),
                nn.Conv2d(inside, outside, 1, 1, 0, bias=False),
                nn.BatchNorm2d(outside),
                nn.ReLU(),
            )

        widths = [32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]
        strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]
        widths = [int(width * alpha) for width in widths]
        blocks = [dense(input_channels, widths[0], 2)]
        for inside, outside, stride in zip(widths, widths[1:], strides):
            blocks.append(separable(inside, outside, stride))
        self.model = nn.Sequential(*blocks, nn.AvgPool2d(7))
        self.fc = nn.Linear(widths[-1], num_classes)

    @torch.no_grad()
    def forward(self, x):
        first, *blocks, _ = self.model
        maps = after_first(x.contiguous(), first[0]).normalise(first[1], "relu")
        for block in blocks:
            maps = after_depthwise(maps, block[0]).normalise(block[1], "relu")
            maps = after_pointwise(maps, block[3]).normalise(block[4], "relu")
        return F.linear(averaged(maps), self.fc.weight, self.fc.bias)
