"""As 1.py, but what a layer loads, normalises and brings to the tensor cores is multiplied with the taps of all three
rows of the kernel at once; their sums, kept apart, are moved by a row where the parts are joined anyway. So each value
is loaded and normalised three times and not nine, and a program has three products to a step."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def note_statistics(total, tile, tiles, c, means, squares, M, BM: tl.constexpr):
    """Store mean and squared deviations of a tile's columns; rows beyond the last are zero."""
    r = tile * BM + tl.arange(0, BM)
    mean = tl.sum(total, 0) / tl.minimum(M - tile * BM, BM)
    away = tl.where((r < M)[:, None], total - mean[None, :], 0.0)
    tl.store(means + c * tiles + tile, mean)
    tl.store(squares + c * tiles + tile, tl.sum(away * away, 0))


@triton.jit
def join_statistics(means, squares, mean, factor, M, tiles, eps, BM: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    inside = t < tiles
    count = tl.where(inside, tl.minimum(M - t * BM, BM), 0).to(tl.float32)
    m = tl.load(means + c * tiles + t, mask=inside, other=0.0)
    s = tl.load(squares + c * tiles + t, mask=inside, other=0.0)
    middle = tl.sum(count * m, 0) / M
    variance = tl.sum(s + count * (m - middle) * (m - middle), 0) / M
    tl.store(mean + c, middle)
    tl.store(factor + c, 1.0 / tl.sqrt(variance + eps))


@triton.jit
def plane_statistics(x, means, squares, images, area, C: tl.constexpr, BLOCK: tl.constexpr):
    """Mean and squared deviations of one channel of one image, channels first."""
    image, c = tl.program_id(0), tl.program_id(1)
    at = x + (image * C + c) * area
    o = tl.arange(0, BLOCK)
    v = tl.load(at + o, mask=o < area, other=0.0)
    mean = tl.sum(v, 0) / area
    away = tl.where(o < area, v - mean, 0.0)
    tl.store(means + c * images + image, mean)
    tl.store(squares + c * images + image, tl.sum(away * away, 0))


@triton.jit
def first_pool(
    x, mean, factor, weight, bias, joint, means, squares, M, tiles, height, width, out_height, out_width,
    C: tl.constexpr, ALL: tl.constexpr, BM: tl.constexpr,
):
    """Batch norm, ReLU and the maximum over 3 x 3 windows at every other place: channels first in, last out."""
    tile = tl.program_id(0)
    r = tile * BM + tl.arange(0, BM)
    c = tl.arange(0, C)
    image = r // (out_height * out_width)
    row = (r // out_width) % out_height * 2 - 1
    column = r % out_width * 2 - 1
    middle = tl.load(mean + c)[None, :]
    scale = (tl.load(factor + c) * tl.load(weight + c))[None, :]
    offset = tl.load(bias + c)[None, :]
    largest = tl.zeros((BM, C), tl.float32)
    for tap in tl.static_range(9):
        i, j = row + tap // 3, column + tap % 3
        inside = ((i >= 0) & (i < height) & (j >= 0) & (j < width) & (r < M))[:, None]
        at = (image * C * height * width + i * width + j)[:, None] + c[None, :] * height * width
        v = (tl.load(x + at, mask=inside, other=0.0) - middle) * scale + offset
        # Nothing is below zero after ReLU, so zero may stand for what lies outside.
        largest = tl.maximum(largest, tl.where(inside, v, 0.0))
    tl.store(joint + r[:, None] * ALL + c[None, :], largest, mask=(r < M)[:, None])
    note_statistics(largest, tile, tiles, c, means, squares, M, BM)


@triton.jit(do_not_specialize=["section"])
def layer_parts(
    joint, mean, factor, weight, bias, w, parts, M, width, section, C,
    ALL: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    part = tl.program_id(1)
    column = r % width
    n = tl.arange(0, N)
    upper = tl.zeros((BM, N), tl.float32)
    level = tl.zeros((BM, N), tl.float32)
    lower = tl.zeros((BM, N), tl.float32)
    for step in range(part * section, tl.minimum(part * section + section, 3 * (C // BK))):
        tap = step // (C // BK)
        c = (step % (C // BK)) * BK + tl.arange(0, BK)
        j = column + tap - 1
        inside = ((j >= 0) & (j < width) & (r < M))[:, None]
        v = tl.load(joint + (r + tap - 1)[:, None] * ALL + c[None, :], mask=inside, other=0.0)
        scale = tl.load(factor + c) * tl.load(weight + c)
        v = (v - tl.load(mean + c)[None, :]) * scale[None, :] + tl.load(bias + c)[None, :]
        v = tl.where(inside, tl.maximum(v, 0.0), 0.0)
        at = w + (n * 9 + tap)[None, :] * C + c[:, None]
        upper = tl.dot(v, tl.load(at), upper, input_precision="tf32")
        level = tl.dot(v, tl.load(at + 3 * C), level, input_precision="tf32")
        lower = tl.dot(v, tl.load(at + 6 * C), lower, input_precision="tf32")
    at = parts + (part * 3 * M + r)[:, None] * N + n[None, :]
    tl.store(at, upper, mask=(r < M)[:, None])
    tl.store(at + M * N, level, mask=(r < M)[:, None])
    tl.store(at + 2 * M * N, lower, mask=(r < M)[:, None])


@triton.jit(do_not_specialize=["count"])
def join_layer(
    parts, joint, means, squares, M, height, width, tiles, count, C,
    ALL: tl.constexpr, N: tl.constexpr, BM: tl.constexpr,
):
    tile = tl.program_id(0)
    r = tile * BM + tl.arange(0, BM)
    n = tl.arange(0, N)
    inside = (r < M)[:, None]
    total = tl.zeros((BM, N), tl.float32)
    row = (r // width) % height
    above = (inside & (row > 0)[:, None]) & (n >= 0)[None, :]
    below = (inside & (row + 1 < height)[:, None]) & (n >= 0)[None, :]
    for part in range(count):
        at = parts + (part * 3 * M + r)[:, None] * N + n[None, :]
        # The upper row of the kernel belongs to the row above.
        total += tl.load(at - width * N, mask=above, other=0.0)
        total += tl.load(at + M * N, mask=inside, other=0.0)
        total += tl.load(at + (2 * M + width) * N, mask=below, other=0.0)
    tl.store(joint + r[:, None] * ALL + (C + n)[None, :], total, mask=inside)
    note_statistics(total, tile, tiles, n, means, squares, M, BM)


@triton.jit
def pooled_in_fours(
    joint, mean, factor, weight, bias, y, M, out_height, out_width,
    C: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr,
):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    inside = (r < M)[:, None] & (c < C)[None, :]
    corner = (r // out_width) * 4 * out_width + (r % out_width) * 2
    middle = tl.load(mean + c, mask=c < C, other=0.0)[None, :]
    scale = tl.load(factor + c, mask=c < C, other=0.0) * tl.load(weight + c, mask=c < C, other=0.0)
    offset = tl.load(bias + c, mask=c < C, other=0.0)[None, :]
    total = tl.zeros((BM, BC), tl.float32)
    for tap in tl.static_range(4):
        at = (corner + (tap // 2) * 2 * out_width + tap % 2)[:, None] * C + c[None, :]
        v = tl.load(joint + at, mask=inside, other=0.0)
        total += tl.maximum((v - middle) * scale[None, :] + offset, 0.0)
    tl.store(y + r[:, None] * C + c[None, :], total * 0.25, mask=inside)


@triton.jit
def pointwise(
    x, w, joint, means, squares, M, tiles,
    K: tl.constexpr, ALL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    tile = tl.program_id(0)
    r = tile * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        v = tl.load(x + r[:, None] * K + k[None, :], mask=(r < M)[:, None], other=0.0)
        weights = tl.load(w + n[None, :] * K + k[:, None])
        total = tl.dot(v, weights, total, input_precision="tf32")
    tl.store(joint + r[:, None] * ALL + n[None, :], total, mask=(r < M)[:, None])
    note_statistics(total, tile, tiles, n, means, squares, M, BM)


@triton.jit
def average(
    x, mean, factor, weight, bias, y, area, C: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr
):
    image = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    r = tl.arange(0, BM)
    v = tl.load(x + (image * area + r)[:, None] * C + c[None, :], mask=(r < area)[:, None], other=0.0)
    scale = tl.load(factor + c) * tl.load(weight + c)
    v = (v - tl.load(mean + c)[None, :]) * scale[None, :] + tl.load(bias + c)[None, :]
    v = tl.where((r < area)[:, None], tl.maximum(v, 0.0), 0.0)
    tl.store(y + image * C + c, tl.sum(v, 0) / area)


class Joint:
    """The channels of a dense block, channels last, with their statistics over the batch."""

    def __init__(self, x, images, height, width, channels, every):
        self.images, self.height, self.width, self.every = images, height, width, every
        self.rows, self.tile = images * height * width, 64 if height > 28 else 32
        self.tiles = triton.cdiv(self.rows, self.tile)
        self.channels = channels
        self.raw = x.new_empty(self.rows, every)
        self.mean, self.factor = x.new_empty(2, every)
        self.notes = x.new_empty(2, channels, self.tiles)

    def join(self, first, last, eps):
        block = triton.next_power_of_2(self.tiles)
        join_statistics[(last - first,)](
            self.notes[0], self.notes[1], self.mean[first:], self.factor[first:], self.rows, self.tiles, eps,
            BM=self.tile, BLOCK=block, num_warps=4 if block >= 512 else 1,
        )
        self.channels = last

    def extend(self, norm, conv):
        growth, c = conv.out_channels, self.channels
        bm = 128 if self.rows > 4096 else 64
        blocks = triton.cdiv(self.rows, bm)
        steps = 3 * (c // 32)
        count = max(1, min(264 // blocks, steps // 4, 16))
        section = triton.cdiv(steps, count)
        count = triton.cdiv(steps, section)
        parts = self.raw.new_empty(count, 3, self.rows, growth)
        w = conv.weight.permute(0, 2, 3, 1).contiguous()
        layer_parts[(blocks, count)](
            self.raw, self.mean, self.factor, norm.weight, norm.bias, w, parts,
            self.rows, self.width, section, c,
            ALL=self.every, N=growth, BM=bm, BK=32, num_warps=bm // 16, num_stages=3,
        )
        join_layer[(self.tiles,)](
            parts, self.raw, self.notes[0], self.notes[1], self.rows, self.height, self.width, self.tiles, count, c,
            ALL=self.every, N=growth, BM=self.tile, num_warps=4,
        )
        self.join(c, c + growth, norm.eps)

    def halved(self, norm, conv, every):
        """Return the start of the next block: pooled in fours, then the 1 x 1 convolution."""
        height, width, channels = self.height // 2, self.width // 2, conv.out_channels
        after = Joint(self.raw, self.images, height, width, channels, every)
        pooled = self.raw.new_empty(after.rows, self.every)
        pooled_in_fours[(triton.cdiv(after.rows, 16), triton.cdiv(self.every, 64))](
            self.raw, self.mean, self.factor, norm.weight, norm.bias, pooled, after.rows, height, width,
            C=self.every, BM=16, BC=64, num_warps=4,
        )
        pointwise[(after.tiles, channels // 32)](
            pooled, conv.weight, after.raw, after.notes[0], after.notes[1], after.rows, after.tiles,
            K=self.every, ALL=every, BM=after.tile, BN=32, BK=32, num_warps=4, num_stages=4,
        )
        after.join(0, channels, norm.eps)
        return after


class DenseBlock(torch.nn.Module):
    def __init__(self, count, width, growth):
        super().__init__()
        nn = torch.nn
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(width + n * growth),
                nn.ReLU(),
                nn.Conv2d(width + n * growth, growth, 3, padding=1, bias=False),
                nn.Dropout(0.0),
            )
            for n in range(count)
        )


class TransitionLayer(torch.nn.Module):
    def __init__(self, width, narrower):
        super().__init__()
        nn = torch.nn
        self.transition = nn.Sequential(
            nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, narrower, 1, bias=False), nn.AvgPool2d(2, 2)
        )


class ModelNew(torch.nn.Module):
    def __init__(self, growth_rate=32, num_classes=1000):
        super().__init__()
        nn = torch.nn
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.dense_blocks = nn.ModuleList()
        self.transition_layers = nn.ModuleList()
        width, counts = 64, [6, 12, 48, 32]
        for count in counts:
            self.dense_blocks.append(DenseBlock(count, width, growth_rate))
            width += count * growth_rate
            if len(self.dense_blocks) < len(counts):
                self.transition_layers.append(TransitionLayer(width, width // 2))
                width //= 2
        self.final_bn = nn.BatchNorm2d(width)
        self.classifier = nn.Linear(width, num_classes)

    def start(self, x):
        conv, norm, _, _ = self.features
        raw = F.conv2d(x, conv.weight, stride=2, padding=3).contiguous()
        images, channels, height, width = raw.shape
        area = height * width
        notes = raw.new_empty(2, channels, images)
        mean, factor = raw.new_empty(2, channels)
        plane_statistics[(images, channels)](
            raw, notes[0], notes[1], images, area, C=channels, BLOCK=triton.next_power_of_2(area), num_warps=8
        )
        join_statistics[(channels,)](
            notes[0], notes[1], mean, factor, images * area, images, norm.eps,
            BM=area, BLOCK=triton.next_power_of_2(images), num_warps=1,
        )
        joint = Joint(raw, images, (height - 1) // 2 + 1, (width - 1) // 2 + 1, channels, self.width_after(0))
        first_pool[(joint.tiles,)](
            raw, mean, factor, norm.weight, norm.bias, joint.raw, joint.notes[0], joint.notes[1],
            joint.rows, joint.tiles, height, width, joint.height, joint.width,
            C=channels, ALL=joint.every, BM=joint.tile, num_warps=4,
        )
        joint.join(0, channels, norm.eps)
        return joint

    def width_after(self, block):
        last = self.dense_blocks[block].layers[-1][2]
        return last.in_channels + last.out_channels

    @torch.no_grad()
    def forward(self, x):
        joint = self.start(x.contiguous())
        for n, block in enumerate(self.dense_blocks):
            for norm, _, conv, _ in block.layers:
                joint.extend(norm, conv)
            if n < len(self.transition_layers):
                norm, _, conv, _ = self.transition_layers[n].transition
                joint = joint.halved(norm, conv, self.width_after(n + 1))
        norm, area = self.final_bn, joint.height * joint.width
        pooled = joint.raw.new_empty(joint.images, joint.every)
        average[(joint.images, joint.every // 64)](
            joint.raw, joint.mean, joint.factor, norm.weight, norm.bias, pooled, area,
            C=joint.every, BM=triton.next_power_of_2(area), BC=64, num_warps=4,
        )
        return F.linear(pooled, self.classifier.weight, self.classifier.bias)
