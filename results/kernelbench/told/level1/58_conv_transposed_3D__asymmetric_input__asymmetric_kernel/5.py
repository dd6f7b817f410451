"""A transposed convolution straight from the images: nothing is copied first, and no product is with a zero that fills a tile.

Positions of a plane are the left operand of the products, which tensor cores take from registers, so that they may lie
in any order in memory, and sixteen channels are enough for the right one. A program walks through the planes, and what a
tap reads of a plane is read once for the three planes of results that need it.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def arrange(weight, arranged, C: tl.constexpr, OUT: tl.constexpr, TAPS: tl.constexpr):
    """[input, output, plane, tap] to [tap, plane, output, input]; TAPS are those of a plane."""
    tap = tl.program_id(0)
    channel = tl.arange(0, C)[None, :]
    out = tl.arange(0, OUT)[:, None]
    for plane in tl.static_range(3):
        value = tl.load(weight + ((channel * OUT + out) * 3 + plane) * TAPS + tap)
        tl.store(arranged + ((tap * 3 + plane) * OUT + out) * C + channel, rounded(value))


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": block, "PLANES": planes}, num_warps=warps, num_stages=stages)
        for block, planes, warps, stages in (
            (128, 9, 4, 3), (128, 9, 8, 3), (64, 18, 4, 3), (64, 9, 4, 3), (128, 6, 4, 2), (256, 9, 8, 3)
        )
    ],
    key=[],
)
@triton.jit
def walk(x, arranged, y, C: tl.constexpr, OUT: tl.constexpr, SIZE: tl.constexpr, TAPS: tl.constexpr,
         BLOCK: tl.constexpr, PLANES: tl.constexpr):
    """Result (d, h, w) is the sum over taps (a, b, c) of what they are times x[d - a, h - b, w - c]."""
    deep: tl.constexpr = SIZE[0] + 2
    high: tl.constexpr = SIZE[1] + TAPS[0] - 1
    wide: tl.constexpr = SIZE[2] + TAPS[1] - 1
    volume: tl.constexpr = SIZE[0] * SIZE[1] * SIZE[2]
    tiles: tl.constexpr = (high * wide + BLOCK - 1) // BLOCK
    image = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(0) // tiles * PLANES
    h = place // wide
    w = place % wide
    k = tl.arange(0, C)
    out = tl.arange(0, OUT)
    source = x + image * (C * volume) + (k[:, None] * volume + (h * SIZE[2] + w)[None, :])
    taps = arranged + out[:, None] * C + k[None, :]
    target = y + image * (OUT * deep * high * wide) + (out[:, None] * (deep * high * wide) + place[None, :])
    older = tl.zeros((BLOCK, OUT), tl.float32)
    newer = tl.zeros((BLOCK, OUT), tl.float32)
    for d in range(tl.maximum(first - 2, 0), tl.minimum(first + PLANES, deep)):
        done = older
        older = newer
        newer = tl.zeros((BLOCK, OUT), tl.float32)
        for tap in range(TAPS[0] * TAPS[1]):
            b = tap // TAPS[1]
            c = tap % TAPS[1]
            seen = (h >= b) & (h - b < SIZE[1]) & (w >= c) & (w - c < SIZE[2]) & (d < SIZE[0])
            far = d * (SIZE[1] * SIZE[2]) - b * SIZE[2] - c
            piece = rounded(tl.trans(tl.load(source + far, mask=seen[None, :], other=0.0)))
            here = taps + tap * (3 * OUT * C)
            done = tl.dot(piece, tl.trans(tl.load(here)), done, input_precision="tf32")
            older = tl.dot(piece, tl.trans(tl.load(here + OUT * C)), older, input_precision="tf32")
            newer = tl.dot(piece, tl.trans(tl.load(here + 2 * OUT * C)), newer, input_precision="tf32")
        real = (place < high * wide) & (d >= first)
        tl.store(target + d * (high * wide), tl.trans(done), mask=real[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=(1, 1, 1), padding=(0, 0, 0), output_padding=(0, 0, 0), groups=1, bias=False):
        super().__init__()
        plain = (tuple(stride), tuple(padding), tuple(output_padding), groups, bias)
        assert kernel_size[0] == 3 and plain == ((1, 1, 1), (0, 0, 0), (0, 0, 0), 1, False)
        self.conv_transpose3d = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x):
        x = x.contiguous()
        weight = self.conv_transpose3d.weight.contiguous()
        images, c = x.shape[:2]
        size = tuple(x.shape[2:])
        out, _, *taps = weight.shape[1:]
        arranged = x.new_empty(weight.numel())
        arrange[(taps[0] * taps[1],)](weight, arranged, C=c, OUT=out, TAPS=taps[0] * taps[1], num_warps=4)
        deep, high, wide = size[0] + 2, size[1] + taps[0] - 1, size[2] + taps[1] - 1
        y = x.new_empty(images, out, deep, high, wide)

        def grid(meta):
            return (triton.cdiv(high * wide, meta["BLOCK"]) * triton.cdiv(deep, meta["PLANES"]), images)

        walk[grid](x, arranged, y, C=c, OUT=out, SIZE=size, TAPS=tuple(taps))
        return y
