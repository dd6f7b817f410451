"""The statistics of a channel are the same for every layer that reads it, so they are computed once, when the channel
is made. Each layer is one implicit product over a joint channels-last buffer, which normalises and activates what it
reads, and writes its 32 channels to the buffer and to the result: nothing is concatenated or normalised in memory
(in train mode, as PyTorch builds the block; running statistics, which no result depends on, are left alone)."""

import torch
import triton
import triton.language as tl


@triton.jit
def note_statistics(total, tile, tiles, c, means, squares, BM: tl.constexpr):
    mean = tl.sum(total, 0) / BM
    away = total - mean[None, :]
    tl.store(means + c * tiles + tile, mean)
    tl.store(squares + c * tiles + tile, tl.sum(away * away, 0))


@triton.jit
def take_in(x, joint, y, means, squares, tiles, area, C: tl.constexpr, ALL: tl.constexpr, BM: tl.constexpr):
    tile = tl.program_id(0)
    image, first = (tile * BM) // area, (tile * BM) % area
    p = tl.arange(0, BM)
    c = tl.arange(0, C)
    v = tl.load(x + image * C * area + c[None, :] * area + (first + p)[:, None])
    tl.store(y + image * ALL * area + c[None, :] * area + (first + p)[:, None], v)
    tl.store(joint + (tile * BM + p)[:, None] * ALL + c[None, :], v)
    note_statistics(v, tile, tiles, c, means, squares, BM)


@triton.jit
def join_statistics(means, squares, mean, factor, tiles, eps, BM: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    m = tl.load(means + c * tiles + t, mask=t < tiles, other=0.0)
    s = tl.load(squares + c * tiles + t, mask=t < tiles, other=0.0)
    middle = tl.sum(m, 0) / tiles
    away = tl.where(t < tiles, m - middle, 0.0)
    variance = tl.sum(s / BM + away * away, 0) / tiles
    tl.store(mean + c, middle)
    tl.store(factor + c, 1.0 / tl.sqrt(variance + eps))


@triton.jit
def dense_layer(
    joint, mean, factor, weight, bias, w, y, means, squares, tiles, height, width,
    C: tl.constexpr, ALL: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
):
    tile = tl.program_id(0)
    area = height * width
    image, first = (tile * BM) // area, (tile * BM) % area
    p = first + tl.arange(0, BM)
    row, column = p // width, p % width
    n = tl.arange(0, N)
    total = tl.zeros((BM, N), tl.float32)
    for step in range(9 * (C // BK)):
        tap = step // (C // BK)
        c = (step % (C // BK)) * BK + tl.arange(0, BK)
        i, j = row + tap // 3 - 1, column + tap % 3 - 1
        inside = ((i >= 0) & (i < height) & (j >= 0) & (j < width))[:, None]
        at = image * area + i * width + j
        v = tl.load(joint + at[:, None] * ALL + c[None, :], mask=inside, other=0.0)
        scale = tl.load(factor + c) * tl.load(weight + c)
        v = (v - tl.load(mean + c)[None, :]) * scale[None, :] + tl.load(bias + c)[None, :]
        v = tl.where(inside, tl.maximum(v, 0.0), 0.0)
        taps = tl.load(w + (n * 9 + tap)[None, :] * C + c[:, None])
        total = tl.dot(v, taps, total, input_precision="tf32")
    tl.store(y + image * ALL * area + (C + n)[None, :] * area + p[:, None], total)
    tl.store(joint + (image * area + p)[:, None] * ALL + (C + n)[None, :], total)
    note_statistics(total, tile, tiles, n, means, squares, BM)


class ModelNew(torch.nn.Module):
    def __init__(self, num_layers, num_input_features, growth_rate):
        super().__init__()
        nn = torch.nn
        widths = [num_input_features + n * growth_rate for n in range(num_layers)]
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, growth_rate, 3, padding=1, bias=False), nn.Dropout(0.0)
            )
            for width in widths
        )

    @torch.no_grad()
    def forward(self, x):
        x = x.contiguous()
        images, width, height, length = x.shape
        growth = self.layers[0][2].out_channels
        every = width + len(self.layers) * growth
        area, bm = height * length, 128
        tiles = images * area // bm
        joint = x.new_empty(images * area, every)
        y = x.new_empty(images, every, height, length)
        mean, factor = x.new_empty(2, every)
        notes = x.new_empty(2, max(width, growth), tiles)
        block = triton.next_power_of_2(tiles)
        take_in[(tiles,)](x, joint, y, notes[0], notes[1], tiles, area, C=width, ALL=every, BM=bm, num_warps=4)
        first, last = 0, width
        for norm, _, conv, _ in self.layers:
            join_statistics[(last - first,)](
                notes[0], notes[1], mean[first:], factor[first:], tiles, norm.eps, BM=bm, BLOCK=block, num_warps=8
            )
            w = conv.weight.permute(0, 2, 3, 1).contiguous()
            dense_layer[(tiles,)](
                joint, mean, factor, norm.weight, norm.bias, w, y, notes[0], notes[1], tiles, height, length,
                C=last, ALL=every, N=growth, BM=bm, BK=32, num_warps=4, num_stages=4,
            )
            first, last = last, last + growth
        return y
