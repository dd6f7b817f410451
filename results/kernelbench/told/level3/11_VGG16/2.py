"""Every convolution is one product over maps that are channels last, with a border of zeros: it adds the bias,
activates, pools where a pool follows, and writes the next map, already rounded to TF32. Where there are too few tiles
for all multiprocessors the inner dimension is cut, and a small kernel joins the parts. Two tiles share a
multiprocessor: one multiplies while the other finishes. The first layer reads the
images as they are; the last writes its pool in the order that the linear layers take, which read each weight once."""

import torch
import triton
import triton.language as tl

WIDTHS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
HIDDEN = 4096
SIDE = 7  # of the last map


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def prepare(weight, arranged, x, count, IMAGES: tl.constexpr, C: tl.constexpr, OUT: tl.constexpr,
            HIGH: tl.constexpr, WIDE: tl.constexpr, BLOCK_OUT: tl.constexpr, CELLS: tl.constexpr):
    """Write weights as [tap and 32 channels, output, channel], as the product takes them; clear the map's border."""
    pid = tl.program_id(0)
    if pid < count:
        chunks: tl.constexpr = C // 32
        out = pid // chunks * BLOCK_OUT + tl.arange(0, BLOCK_OUT)[:, None]
        k = tl.arange(0, 32)[None, :]
        source = weight + (out * C + pid % chunks * 32 + k) * 9
        for tap in tl.static_range(9):
            target = arranged + ((tap * chunks + pid % chunks) * OUT + out) * 32 + k
            tl.store(target, rounded(tl.load(source + tap)))
    else:
        cell = (pid - count) * CELLS + tl.arange(0, CELLS)
        border: tl.constexpr = 2 * (WIDE + 2) + 2 * HIGH
        image, at = cell // border, cell % border
        side = at - 2 * (WIDE + 2)
        row = tl.where(side >= 0, 1 + side // 2, at // (WIDE + 2) * (HIGH + 1))
        column = tl.where(side >= 0, side % 2 * (WIDE + 1), at % (WIDE + 2))
        place = x + ((image * (HIGH + 2) + row) * (WIDE + 2) + column)[:, None] * C + tl.arange(0, C)[None, :]
        tl.store(place, tl.zeros((CELLS, C), tl.float32), mask=(image < IMAGES)[:, None])


@triton.jit
def first_layer(x, weight, bias, y, pixels, HIGH: tl.constexpr, WIDE: tl.constexpr, OUT: tl.constexpr,
                BLOCK: tl.constexpr):
    """3 x 3 over three channels: channels first in, channels last with a border out."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image, row, column = p // (HIGH * WIDE), p // WIDE % HIGH, p % WIDE
    k = tl.arange(0, 32)
    n = tl.arange(0, OUT)
    i = row[:, None] + (k // 3 % 3)[None, :] - 1
    j = column[:, None] + (k % 3)[None, :] - 1
    there = (i >= 0) & (i < HIGH) & (j >= 0) & (j < WIDE) & (k < 27)[None, :] & (p < pixels)[:, None]
    at = ((image * 3)[:, None] + (k // 9)[None, :]) * (HIGH * WIDE) + i * WIDE + j
    patch = tl.load(x + at, mask=there, other=0.0)
    taps = tl.load(weight + n[None, :] * 27 + k[:, None], mask=(k < 27)[:, None], other=0.0)
    total = tl.dot(rounded(patch), rounded(taps), input_precision="tf32") + tl.load(bias + n)[None, :]
    at = ((image * (HIGH + 2) + row + 1) * (WIDE + 2) + column + 1)[:, None] * OUT + n[None, :]
    tl.store(y + at, rounded(tl.maximum(total, 0.0)), mask=(p < pixels)[:, None])


@triton.jit
def finish(sums, bias, y, out, first, IMAGES: tl.constexpr, OUT: tl.constexpr, HIGH: tl.constexpr,
           WIDE: tl.constexpr, POOL: tl.constexpr, LAST: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Bias, activation and pool of sums [ROWS outputs, BLOCK pixels], and what becomes of them. Pixels that are
    pooled together are neighbours."""
    sums = tl.maximum(sums + tl.load(bias + out)[:, None], 0.0)
    high: tl.constexpr = HIGH // 2 if POOL else HIGH
    wide: tl.constexpr = WIDE // 2 if POOL else WIDE
    if POOL:
        sums = tl.max(tl.reshape(sums, (ROWS, BLOCK // 4, 4)), 2)
        cell = first // 4 + tl.arange(0, BLOCK // 4)
    else:
        cell = first + tl.arange(0, BLOCK)
    image = cell // (high * wide)
    if LAST:
        at = (image * OUT * high * wide + cell % (high * wide))[None, :] + out[:, None] * (high * wide)
    else:
        row, column = cell // wide % high, cell % wide
        at = ((image * (high + 2) + row + 1) * (wide + 2) + column + 1)[None, :] * OUT + out[:, None]
    tl.store(y + at, rounded(sums), mask=(image < IMAGES)[None, :])


@triton.jit
def convolve(x, arranged, bias, y, IMAGES: tl.constexpr, C: tl.constexpr, OUT: tl.constexpr, HIGH: tl.constexpr,
             WIDE: tl.constexpr, POOL: tl.constexpr, LAST: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr,
             BLOCK: tl.constexpr):
    chunks: tl.constexpr = C // 32
    steps: tl.constexpr = 9 * chunks // PARTS
    out = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    first = tl.program_id(1) * BLOCK
    part = tl.program_id(2)
    index = first + tl.arange(0, BLOCK)
    image = tl.minimum(index // (HIGH * WIDE), IMAGES - 1)
    if POOL:
        cell = index // 4
        row = cell // (WIDE // 2) % (HIGH // 2) * 2 + index // 2 % 2
        column = cell % (WIDE // 2) * 2 + index % 2
    else:
        row, column = index // WIDE % HIGH, index % WIDE
    k = tl.arange(0, 32)
    windows = x + ((image * (HIGH + 2) + row) * (WIDE + 2) + column)[:, None] * C + k[None, :]
    left = arranged + out[:, None] * 32 + k[None, :]
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    for step in range(part * steps, part * steps + steps):
        tap = step // chunks
        far = tap // 3 * (WIDE + 2) + tap % 3
        patch = tl.load(windows + (far * C + step % chunks * 32))
        weights = tl.load(left + step * (OUT * 32))
        sums = tl.dot(weights, tl.trans(patch), sums, input_precision="tf32")
    if PARTS == 1:
        finish(sums, bias, y, out, first, IMAGES, OUT, HIGH, WIDE, POOL, LAST, ROWS, BLOCK)
    else:  # y holds sums of parts
        pixels: tl.constexpr = IMAGES * HIGH * WIDE
        at = (part * OUT + out)[:, None] * pixels + index[None, :]
        tl.store(y + at, sums, mask=(index < pixels)[None, :])


@triton.jit
def join_parts(partial, bias, y, IMAGES: tl.constexpr, OUT: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr,
               POOL: tl.constexpr, LAST: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr,
               BLOCK: tl.constexpr):
    pixels: tl.constexpr = IMAGES * HIGH * WIDE
    out = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    first = tl.program_id(1) * BLOCK
    index = first + tl.arange(0, BLOCK)
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    for part in tl.static_range(PARTS):
        at = (part * OUT + out)[:, None] * pixels + index[None, :]
        sums += tl.load(partial + at, mask=(index < pixels)[None, :], other=0.0)
    finish(sums, bias, y, out, first, IMAGES, OUT, HIGH, WIDE, POOL, LAST, ROWS, BLOCK)


@triton.jit
def partial_linear(x, w, partial, rows, columns, section, INNER: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Part of the inner dimension, for the whole batch: [columns, batch]."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    part = tl.program_id(1)
    r = tl.arange(0, 16)
    k = tl.arange(0, BK)
    total = tl.zeros((BN, 16), tl.float32)
    for start in range(part * section, part * section + section, BK):
        weights = tl.load(w + n[:, None] * INNER + (start + k)[None, :], mask=(n < columns)[:, None], other=0.0)
        v = tl.load(x + r[:, None] * INNER + (start + k)[None, :], mask=(r < rows)[:, None], other=0.0)
        total = tl.dot(weights, tl.trans(v), total, input_precision="tf32")
    at = (part * rows + r)[None, :] * columns + n[:, None]
    tl.store(partial + at, total, mask=(r < rows)[None, :] & (n < columns)[:, None])


@triton.jit
def join_linear(partial, bias, y, count, columns, PARTS: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    total = tl.load(bias + at % columns, mask=inside, other=0.0)
    for part in tl.static_range(PARTS):
        total += tl.load(partial + part * count + at, mask=inside, other=0.0)
    if RELU:
        total = rounded(tl.maximum(total, 0.0))
    tl.store(y + at, total, mask=inside)


class Layer:
    """A convolution with its map, and how its product is cut."""

    def __init__(self, conv, x, images, side, pool, last):
        self.conv, self.x = conv, x
        self.images, self.side, self.pool, self.last = images, side, pool, last
        self.inputs, self.outputs = conv.in_channels, conv.out_channels
        self.rows = min(128, self.outputs)
        self.strips = self.outputs // self.rows
        self.block = 128 if self.rows == 128 else 256
        self.tiles = triton.cdiv(images * side * side, self.block)
        steps = 9 * self.inputs // 32
        self.parts = 4 if self.tiles * self.strips <= 80 and steps % 4 == 0 else 1
        self.arranged = x.new_empty(9 * self.inputs * self.outputs)
        side = side // 2 if pool else side
        self.y = x.new_empty(images, side + 2, side + 2, self.outputs)
        if last:
            self.y = x.new_empty(images, self.outputs * side * side)

    def prepare(self):
        block_out = min(16, self.outputs)
        count = self.outputs // block_out * (self.inputs // 32)
        cells = triton.cdiv(self.images * 4 * (self.side + 1), 32)
        prepare[(count + cells,)](
            self.conv.weight, self.arranged, self.x, count, IMAGES=self.images, C=self.inputs, OUT=self.outputs,
            HIGH=self.side, WIDE=self.side, BLOCK_OUT=block_out, CELLS=32, num_warps=4,
        )

    def convolve(self):
        place = dict(
            IMAGES=self.images, OUT=self.outputs, HIGH=self.side, WIDE=self.side, POOL=self.pool, LAST=self.last,
            PARTS=self.parts,
        )
        sums = self.y
        if self.parts > 1:
            sums = self.x.new_empty(self.parts, self.outputs, self.images * self.side**2)
        convolve[(self.strips, self.tiles, self.parts)](
            self.x, self.arranged, self.conv.bias, sums, C=self.inputs, ROWS=self.rows, BLOCK=self.block, **place,
            num_warps=4, num_stages=3 if self.block == 128 else 2,
        )
        if self.parts > 1:
            join_parts[(self.outputs // 32, triton.cdiv(self.images * self.side**2, 64))](
                sums, self.conv.bias, self.y, ROWS=32, BLOCK=64, **place, num_warps=4
            )


def linear(x, layer, relu):
    rows, inner = x.shape
    columns = layer.out_features
    strips = triton.cdiv(columns, 64)
    parts = 1
    while strips * parts * 2 <= 512 and inner % (128 * parts) == 0:
        parts *= 2
    partial = x.new_empty(parts, rows, columns)
    partial_linear[(strips, parts)](
        x, layer.weight, partial, rows, columns, inner // parts, INNER=inner, BN=64, BK=64, num_warps=4, num_stages=4
    )
    y = x.new_empty(rows, columns)
    join_linear[(triton.cdiv(y.numel(), 256),)](
        partial, layer.bias, y, y.numel(), columns, PARTS=parts, RELU=relu, BLOCK=256, num_warps=2
    )
    return y


class ModelNew(torch.nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        nn = torch.nn
        layers, before = [], 3
        for block in WIDTHS:
            for width in block:
                layers += [nn.Conv2d(before, width, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
                before = width
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(before * SIDE * SIDE, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Dropout(p=0.0),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Dropout(p=0.0),
            nn.Linear(HIDDEN, num_classes),
        )

    @torch.no_grad()
    def forward(self, x):
        x = x.contiguous()
        images, _, side, _ = x.shape
        first, *convs = [layer for layer in self.features if isinstance(layer, torch.nn.Conv2d)]
        pooled = [last for block in WIDTHS for last in [False] * (len(block) - 1) + [True]][1:]
        maps = [x.new_empty(images, side + 2, side + 2, first.out_channels)]
        layers, now = [], side
        for conv, pool in zip(convs, pooled):
            layers.append(Layer(conv, maps[-1], images, now, pool, conv is convs[-1]))
            maps.append(layers[-1].y)
            now = now // 2 if pool else now
        for layer in layers:
            layer.prepare()
        first_layer[(triton.cdiv(images * side * side, 128),)](
            x, first.weight, first.bias, maps[0], images * side * side, HIGH=side, WIDE=side, OUT=first.out_channels,
            BLOCK=128, num_warps=4,
        )
        for layer in layers:
            layer.convolve()
        x = maps[-1]
        head = [layer for layer in self.classifier if isinstance(layer, torch.nn.Linear)]
        for layer in head:
            x = linear(x, layer, layer is not head[-1])
        return x
