"""Maps are channels last, and an inception is two kernels: one for all products with single pixels, the pooled ones
among them, which pools as it reads; one for the larger windows. Each writes its channels where the joint map wants
them. Values are rounded to TF32 when they are stored, weights when they are put in the order of the products."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

STEM = (64, 64, 192)
INCEPTIONS = (  # 1x1, 3x3 from, to, 5x5 from, to, pooled; None: a pool of step two
    (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None,
    (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), None,
    (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
)
NAMES = ("3a", "3b", None, "4a", "4b", "4c", "4d", "4e", None, "5a", "5b")


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def arrange_one(w, arranged, block, OUT: tl.constexpr, C: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    """[output, channel, tap] to [output, tap, channel]."""
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = at < OUT * C * TAPS
    source = w + at // (C * TAPS) * (C * TAPS) + at % C * TAPS + at // C % TAPS
    tl.store(arranged + at, rounded(tl.load(source, mask=inside, other=0.0)), mask=inside)


@triton.jit
def arrange(w1, w3a, w3, w5a, w5, wp, arranged, IN: tl.constexpr, N1: tl.constexpr, R3: tl.constexpr,
            N3: tl.constexpr, R5: tl.constexpr, N5: tl.constexpr, NP: tl.constexpr, BLOCK: tl.constexpr):
    """All weights of an inception, one after the other."""
    b1: tl.constexpr = (N1 * IN + BLOCK - 1) // BLOCK
    b2: tl.constexpr = b1 + (R3 * IN + BLOCK - 1) // BLOCK
    b3: tl.constexpr = b2 + (N3 * R3 * 9 + BLOCK - 1) // BLOCK
    b4: tl.constexpr = b3 + (R5 * IN + BLOCK - 1) // BLOCK
    b5: tl.constexpr = b4 + (N5 * R5 * 25 + BLOCK - 1) // BLOCK
    s1: tl.constexpr = N1 * IN
    s2: tl.constexpr = s1 + R3 * IN
    s3: tl.constexpr = s2 + N3 * R3 * 9
    s4: tl.constexpr = s3 + R5 * IN
    s5: tl.constexpr = s4 + N5 * R5 * 25
    pid = tl.program_id(0)
    if pid < b1:
        arrange_one(w1, arranged, pid, N1, IN, 1, BLOCK)
    elif pid < b2:
        arrange_one(w3a, arranged + s1, pid - b1, R3, IN, 1, BLOCK)
    elif pid < b3:
        arrange_one(w3, arranged + s2, pid - b2, N3, R3, 9, BLOCK)
    elif pid < b4:
        arrange_one(w5a, arranged + s3, pid - b3, R5, IN, 1, BLOCK)
    elif pid < b5:
        arrange_one(w5, arranged + s4, pid - b4, N5, R5, 25, BLOCK)
    else:
        arrange_one(wp, arranged + s5, pid - b5, NP, IN, 1, BLOCK)


@triton.jit
def arrange_single(w, arranged, OUT: tl.constexpr, C: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    arrange_one(w, arranged, tl.program_id(0), OUT, C, TAPS, BLOCK)


@triton.jit
def first_layer(x, weight, bias, y, pixels, HIGH: tl.constexpr, WIDE: tl.constexpr, OUT: tl.constexpr,
                BM: tl.constexpr):
    """7 x 7 over three channels by steps of two: channels first in, channels last out."""
    high: tl.constexpr = HIGH // 2
    wide: tl.constexpr = WIDE // 2
    p = tl.program_id(0) * BM + tl.arange(0, BM)
    image, row, column = p // (high * wide), p // wide % high * 2 - 3, p % wide * 2 - 3
    n = tl.arange(0, OUT)
    total = tl.zeros((BM, OUT), tl.float32)
    for start in range(0, 160, 32):
        k = start + tl.arange(0, 32)
        i, j = row[:, None] + (k // 7 % 7)[None, :], column[:, None] + (k % 7)[None, :]
        there = (i >= 0) & (i < HIGH) & (j >= 0) & (j < WIDE) & (k < 147)[None, :] & (p < pixels)[:, None]
        at = ((image * 3)[:, None] + (k // 49)[None, :]) * (HIGH * WIDE) + i * WIDE + j
        v = tl.load(x + at, mask=there, other=0.0)
        w = tl.load(weight + n[None, :] * 147 + k[:, None], mask=(k < 147)[:, None], other=0.0)
        total = tl.dot(rounded(v), rounded(w), total, input_precision="tf32")
    total = tl.maximum(total + tl.load(bias + n)[None, :], 0.0)
    tl.store(y + p[:, None] * OUT + n[None, :], rounded(total), mask=(p < pixels)[:, None])


@triton.jit
def largest(x, image, row, column, k, valid, C: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr):
    """The pool of 3 x 3 around pixels, for channels k."""
    best = tl.full((row.shape[0], k.shape[0]), -float("inf"), tl.float32)
    for tap in tl.static_range(9):
        i, j = row + tap // 3 - 1, column + tap % 3 - 1
        there = (i >= 0) & (i < HIGH) & (j >= 0) & (j < WIDE) & valid
        at = ((image * HIGH + i) * WIDE + j)[:, None] * C + k[None, :]
        mask = there[:, None] & (k < C)[None, :]
        best = tl.maximum(best, tl.load(x + at, mask=mask, other=-float("inf")))
    return tl.where(valid[:, None] & (k < C)[None, :], best, 0.0)


@triton.jit
def pool(x, y, IMAGES: tl.constexpr, C: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr,
         BC: tl.constexpr):
    """3 x 3 by steps of two."""
    p = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.program_id(1) * BC + tl.arange(0, BC)
    valid = p < IMAGES * (HIGH // 2) * (WIDE // 2)
    image, row, column = p // (HIGH // 2 * (WIDE // 2)), p // (WIDE // 2) % (HIGH // 2) * 2, p % (WIDE // 2) * 2
    best = largest(x, image, row, column, k, valid, C, HIGH, WIDE)
    tl.store(y + p[:, None] * C + k[None, :], best, mask=valid[:, None] & (k < C)[None, :])


@triton.jit
def pooled_product(x, w, image, row, column, n, valid, columns, C: tl.constexpr, HIGH: tl.constexpr,
                   WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    total = tl.zeros((BM, BN), tl.float32)
    for start in tl.range(0, C, 32, num_stages=1):
        k = start + tl.arange(0, 32)
        v = largest(x, image, row, column, k, valid, C, HIGH, WIDE)
        weights = tl.load(w + n[:, None] * C + k[None, :], mask=(n < columns)[:, None] & (k < C)[None, :], other=0.0)
        total = tl.dot(v, tl.trans(weights), total, input_precision="tf32")
    return total


@triton.jit
def window_product(x, w, image, row, column, n, valid, columns, C: tl.constexpr, HIGH: tl.constexpr,
                   WIDE: tl.constexpr, SIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Windows of SIDE x SIDE around pixels, times weights [output, tap, channel]."""
    chunks: tl.constexpr = (C + 31) // 32
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(SIDE * SIDE * chunks):
        tap = step // chunks
        k = step % chunks * 32 + tl.arange(0, 32)
        i, j = row + tap // SIDE - SIDE // 2, column + tap % SIDE - SIDE // 2
        there = (i >= 0) & (i < HIGH) & (j >= 0) & (j < WIDE) & valid
        at = ((image * HIGH + i) * WIDE + j)[:, None] * C + k[None, :]
        v = tl.load(x + at, mask=there[:, None] & (k < C)[None, :], other=0.0)
        at = n[:, None] * (SIDE * SIDE * C) + tap * C + k[None, :]
        weights = tl.load(w + at, mask=(n < columns)[:, None] & (k < C)[None, :], other=0.0)
        total = tl.dot(v, tl.trans(weights), total, input_precision="tf32")
    return total


@triton.jit
def give(total, bias, y, p, n, valid, columns, row_length, RELU: tl.constexpr):
    total += tl.load(bias + n, mask=n < columns, other=0.0)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0)
    tl.store(y + p[:, None] * row_length + n[None, :], rounded(total), mask=valid[:, None] & (n < columns)[None, :])


@triton.jit
def stem_product(x, w, bias, y, IMAGES: tl.constexpr, C: tl.constexpr, OUT: tl.constexpr, HIGH: tl.constexpr,
                 WIDE: tl.constexpr, POOL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """1 x 1 over a pool by steps of two, or 3 x 3, and the activation."""
    high: tl.constexpr = HIGH // 2 if POOL else HIGH
    wide: tl.constexpr = WIDE // 2 if POOL else WIDE
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    p = tl.program_id(1) * BM + tl.arange(0, BM)
    valid = p < IMAGES * high * wide
    image, row, column = p // (high * wide), p // wide % high, p % wide
    if POOL:
        total = pooled_product(x, w, image, row * 2, column * 2, n, valid, OUT, C, HIGH, WIDE, BM, BN)
    else:
        total = window_product(x, w, image, row, column, n, valid, OUT, C, HIGH, WIDE, 3, BM, BN)
    give(total, bias, y, p, n, valid, OUT, OUT, True)


@triton.jit
def single_pixels(x, arranged, b1, b3, b5, bp, joint, y3, y5, IMAGES: tl.constexpr, IN: tl.constexpr,
                  HIGH: tl.constexpr, WIDE: tl.constexpr, N1: tl.constexpr, R3: tl.constexpr, N3: tl.constexpr,
                  R5: tl.constexpr, N5: tl.constexpr, NP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    all_columns: tl.constexpr = N1 + N3 + N5 + NP
    t1: tl.constexpr = (N1 + BN - 1) // BN
    t2: tl.constexpr = t1 + (R3 + BN - 1) // BN
    t3: tl.constexpr = t2 + (R5 + BN - 1) // BN
    strip = tl.program_id(0)
    p = tl.program_id(1) * BM + tl.arange(0, BM)
    valid = p < IMAGES * HIGH * WIDE
    image, row, column = p // (HIGH * WIDE), p // WIDE % HIGH, p % WIDE
    n = tl.arange(0, BN)
    if strip < t3:
        if strip < t1:
            n += strip * BN
            columns, length, w, bias, y = N1, all_columns, arranged, b1, joint
        elif strip < t2:
            n += (strip - t1) * BN
            columns, length, w, bias, y = R3, R3, arranged + N1 * IN, b3, y3
        else:
            n += (strip - t2) * BN
            columns, length, w, bias, y = R5, R5, arranged + (N1 * IN + R3 * IN + N3 * R3 * 9), b5, y5
        total = window_product(x, w, image, row, column, n, valid, columns, IN, HIGH, WIDE, 1, BM, BN)
        give(total, bias, y, p, n, valid, columns, length, False)
    else:
        n += (strip - t3) * BN
        w = arranged + (N1 * IN + R3 * IN + N3 * R3 * 9 + R5 * IN + N5 * R5 * 25)
        total = pooled_product(x, w, image, row, column, n, valid, NP, IN, HIGH, WIDE, BM, BN)
        give(total, bp, joint + (N1 + N3 + N5), p, n, valid, NP, all_columns, False)


@triton.jit
def windows(y3, y5, arranged, b3, b5, joint, IMAGES: tl.constexpr, IN: tl.constexpr, HIGH: tl.constexpr,
            WIDE: tl.constexpr, N1: tl.constexpr, R3: tl.constexpr, N3: tl.constexpr, R5: tl.constexpr,
            N5: tl.constexpr, NP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    all_columns: tl.constexpr = N1 + N3 + N5 + NP
    t3: tl.constexpr = (N3 + BN - 1) // BN
    strip = tl.program_id(0)
    p = tl.program_id(1) * BM + tl.arange(0, BM)
    valid = p < IMAGES * HIGH * WIDE
    image, row, column = p // (HIGH * WIDE), p // WIDE % HIGH, p % WIDE
    n = tl.arange(0, BN)
    if strip < t3:
        n += strip * BN
        w = arranged + (N1 * IN + R3 * IN)
        total = window_product(y3, w, image, row, column, n, valid, N3, R3, HIGH, WIDE, 3, BM, BN)
        give(total, b3, joint + N1, p, n, valid, N3, all_columns, False)
    else:
        n += (strip - t3) * BN
        w = arranged + (N1 * IN + R3 * IN + N3 * R3 * 9 + R5 * IN)
        total = window_product(y5, w, image, row, column, n, valid, N5, R5, HIGH, WIDE, 5, BM, BN)
        give(total, b5, joint + (N1 + N3), p, n, valid, N5, all_columns, False)


@triton.jit
def average(x, y, AREA: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr, BC: tl.constexpr):
    image = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    p = tl.arange(0, BLOCK)
    inside = (p < AREA)[:, None] & (c < C)[None, :]
    v = tl.load(x + (image * AREA + p)[:, None] * C + c[None, :], mask=inside, other=0.0)
    tl.store(y + image * C + c, tl.sum(v, 0) / AREA, mask=c < C)


class Inception(torch.nn.Module):
    def __init__(self, inside, n1, r3, n3, r5, n5, pooled):
        super().__init__()
        nn = torch.nn
        self.branch1x1 = nn.Conv2d(inside, n1, kernel_size=1)
        self.branch3x3 = nn.Sequential(nn.Conv2d(inside, r3, 1), nn.Conv2d(r3, n3, 3, padding=1))
        self.branch5x5 = nn.Sequential(nn.Conv2d(inside, r5, 1), nn.Conv2d(r5, n5, 5, padding=2))
        self.branch_pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(inside, pooled, 1))
        self.sizes = dict(IN=inside, N1=n1, R3=r3, N3=n3, R5=r5, N5=n5, NP=pooled)
        self.outside = n1 + n3 + n5 + pooled

    def prepared(self):
        """Weights in the order of the products."""
        a, b, c, d, e, f = (conv.weight for conv in self.convs())
        arranged = a.new_empty(sum(w.numel() for w in (a, b, c, d, e, f)))
        blocks = sum(triton.cdiv(w.numel(), 1024) for w in (a, b, c, d, e, f))
        arrange[(blocks,)](a, b, c, d, e, f, arranged, **self.sizes, BLOCK=1024, num_warps=4)
        return arranged

    def convs(self):
        return self.branch1x1, *self.branch3x3, *self.branch5x5, self.branch_pool[1]

    def forward(self, x, arranged, images, side):
        s = self.sizes
        pixels = images * side * side
        joint, y3, y5 = (x.new_empty(pixels, n) for n in (self.outside, s["R3"], s["R5"]))
        one, three_a, three, five_a, five, pooled = (conv.bias for conv in self.convs())
        place = dict(IMAGES=images, HIGH=side, WIDE=side, **s)
        bm, bn = 64, 64 if side > 7 else 32
        strips = sum(triton.cdiv(s[n], bn) for n in ("N1", "R3", "R5", "NP"))
        single_pixels[(strips, triton.cdiv(pixels, bm))](
            x, arranged, one, three_a, five_a, pooled, joint, y3, y5, **place, BM=bm, BN=bn, num_warps=4, num_stages=4
        )
        strips = sum(triton.cdiv(s[n], bn) for n in ("N3", "N5"))
        windows[(strips, triton.cdiv(pixels, bm))](
            y3, y5, arranged, three, five, joint, **place, BM=bm, BN=bn, num_warps=4, num_stages=3
        )
        return joint


class ModelNew(torch.nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        nn = torch.nn
        self.conv1 = nn.Conv2d(3, STEM[0], kernel_size=7, stride=2, padding=3)
        self.conv2 = nn.Conv2d(STEM[0], STEM[1], kernel_size=1)
        self.conv3 = nn.Conv2d(STEM[1], STEM[2], kernel_size=3, padding=1)
        width = STEM[2]
        for name, sizes in zip(NAMES, INCEPTIONS):
            if name is not None:
                module = Inception(width, *sizes)
                setattr(self, f"inception{name}", module)
                width = module.outside
        self.fc = nn.Linear(width, num_classes)

    @torch.no_grad()
    def forward(self, x):
        x = x.contiguous()
        images, _, side, _ = x.shape
        modules = [None if name is None else getattr(self, f"inception{name}") for name in NAMES]
        prepared = [None if module is None else module.prepared() for module in modules]
        tops = [x.new_empty(conv.weight.numel()) for conv in (self.conv2, self.conv3)]
        for conv, top, taps in zip((self.conv2, self.conv3), tops, (1, 9)):
            arrange_single[(triton.cdiv(top.numel(), 1024),)](
                conv.weight, top, OUT=conv.out_channels, C=conv.in_channels, TAPS=taps, BLOCK=1024, num_warps=4
            )

        side //= 2
        pixels = images * side * side
        now = x.new_empty(pixels, STEM[0])
        first_layer[(triton.cdiv(pixels, 128),)](
            x, self.conv1.weight, self.conv1.bias, now, pixels, HIGH=side * 2, WIDE=side * 2, OUT=STEM[0], BM=128,
            num_warps=4, num_stages=2,
        )
        for conv, top, halve in ((self.conv2, tops[0], True), (self.conv3, tops[1], False)):
            before, side = side, side // 2 if halve else side
            pixels = images * side * side
            bm = 64 if halve else 128
            y = x.new_empty(pixels, conv.out_channels)
            stem_product[(conv.out_channels // 64, triton.cdiv(pixels, bm))](
                now, top, conv.bias, y, IMAGES=images, C=conv.in_channels, OUT=conv.out_channels, HIGH=before,
                WIDE=before, POOL=halve, BM=bm, BN=64, num_warps=4, num_stages=3,
            )
            now = y
        now, side = self.halved(now, images, side)
        for module, arranged in zip(modules, prepared):
            if module is None:
                now, side = self.halved(now, images, side)
            else:
                now = module(now, arranged, images, side)
        width, area = now.shape[1], side * side
        y = x.new_empty(images, width)
        average[(images, triton.cdiv(width, 64))](
            now, y, AREA=area, C=width, BLOCK=triton.next_power_of_2(area), BC=64, num_warps=4
        )
        return F.linear(y, self.fc.weight, self.fc.bias)

    @staticmethod
    def halved(x, images, side):
        width, half = x.shape[1], side // 2
        y = x.new_empty(images * half * half, width)
        pool[(triton.cdiv(y.shape[0], 32), triton.cdiv(width, 64))](
            x, y, IMAGES=images, C=width, HIGH=side, WIDE=side, BM=32, BC=64, num_warps=4
        )
        return y, half
