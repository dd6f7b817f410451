"""Two planes of results from four products where there were six: Winograd's way along the depth, which has three taps.

From planes a, b, c, d of the image, the sums a - c, b + c, c - b, b - d are what the products take, with combinations of
the three planes of taps; sums and differences of the four products are the two results. A third of the products is saved,
and of what they read from the second-level cache, which may be what held them up; the images to be read are twice as
large. Sums are made before rounding to TF32.

As before, two neighbours of a line are computed by one product, from the window of eight columns that they have in common:
each column is written with its 3 channels of 5 rows side by side, 16 numbers with one zero, so that a window is one run of
128 numbers, and windows are rows of a matrix that overlap, which the tensor memory accelerator reads as it stands. The
images may go in parts (PARTS), so that what is written for the products stays in the second-level cache.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {"BLOCK": 128, "BLOCK_IN": 32, "WARPS": 8, "STAGES": 3, "TWO": True, "REGISTERS": 0, "PARTS": 1, "STACK_BLOCK": 128, "STACK_WARPS": 4}


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def stack_rows(x, stacked, C: tl.constexpr, D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, HIGH: tl.constexpr,
               BLOCK: tl.constexpr):
    """stacked[image, pair of planes of the result, which of four sums, line of the result, column, channel * 5 + row]"""
    PAIRS: tl.constexpr = (D - 1) // 2
    number = tl.program_id(1)
    plane = number % PAIRS * 2
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, 16)
    source = x + (number // PAIRS).to(tl.int64) * (C * D * H * W) + plane * (H * W)
    at = (k // 5 * (D * H * W) + k % 5 * W)[:, None] + p[None, :]
    inside = p < HIGH * W
    seen = (k < C * 5)[:, None] & inside[None, :]
    a = tl.load(source + at, mask=seen, other=0.0)
    b = tl.load(source + H * W + at, mask=seen, other=0.0)
    c = tl.load(source + 2 * H * W + at, mask=seen, other=0.0)
    d = tl.load(source + 3 * H * W + at, mask=seen & (plane + 3 < D), other=0.0)
    AREA: tl.constexpr = HIGH * W * 16
    target = stacked + number.to(tl.int64) * (4 * AREA) + (p[:, None] * 16 + k[None, :])
    tl.store(target, tl.trans(rounded(a - c)), mask=inside[:, None])
    tl.store(target + AREA, tl.trans(rounded(b + c)), mask=inside[:, None])
    tl.store(target + 2 * AREA, tl.trans(rounded(c - b)), mask=inside[:, None])
    tl.store(target + 3 * AREA, tl.trans(rounded(b - d)), mask=inside[:, None])


@triton.jit
def arrange(weight, arranged, C: tl.constexpr, OUT: tl.constexpr):
    """arranged[which of four sums, neighbour and output, column * 16 + channel * 5 + row]; the last with changed sign."""
    row = tl.program_id(0)
    which = row // (2 * OUT)
    k = tl.arange(0, 128)
    channel = k % 16 // 5
    tap_h = k % 16 % 5
    tap_w = k // 16 - row // OUT % 2
    there = (k % 16 < C * 5) & (tap_w >= 0) & (tap_w < 7)
    source = weight + (row % OUT * C + channel) * 105 + tap_h * 7 + tap_w
    near = tl.load(source, mask=there, other=0.0)
    middle = tl.load(source + 35, mask=there, other=0.0)
    far = tl.load(source + 70, mask=there, other=0.0)
    sign = tl.where(which == 1, 1.0, -1.0)
    both = 0.5 * (near + far + sign * middle)
    value = tl.where(which == 0, near, tl.where(which == 3, -far, both))
    tl.store(arranged + row * 128 + k, rounded(value))


@triton.jit
def put(sums, y, out, place, inside, AREA: tl.constexpr, OUT: tl.constexpr, BLOCK: tl.constexpr):
    sums = tl.reshape(tl.permute(tl.reshape(sums, (2, OUT, BLOCK)), (1, 2, 0)), (OUT, BLOCK * 2))
    tl.store(y + (out[:, None] * AREA + place[None, :]), sums, mask=inside[None, :])


@triton.jit
def convolve(windows, taps, y, OUT: tl.constexpr, D: tl.constexpr, HIGH: tl.constexpr, W: tl.constexpr,
             BLOCK: tl.constexpr, BLOCK_IN: tl.constexpr, TWO: tl.constexpr):
    deep: tl.constexpr = D - 2
    wide: tl.constexpr = W - 6
    pairs: tl.constexpr = W // 2  # of a line; the last three have no result
    area: tl.constexpr = HIGH * pairs
    count: tl.constexpr = (D - 1) // 2
    chunks: tl.constexpr = 128 // BLOCK_IN
    number = tl.program_id(1)
    first = tl.program_id(0) * BLOCK
    start = number * (4 * area) + first
    one = tl.zeros((2 * OUT, BLOCK), tl.float32)
    two = tl.zeros((2 * OUT, BLOCK), tl.float32)
    if TWO:
        for chunk in range(chunks):
            v = windows.load([start + area, chunk * BLOCK_IN])
            one = tl.dot(taps.load([2 * OUT, chunk * BLOCK_IN]), v.T, one, input_precision="tf32")
            v = windows.load([start + 2 * area, chunk * BLOCK_IN])
            two = tl.dot(taps.load([4 * OUT, chunk * BLOCK_IN]), v.T, two, input_precision="tf32")
    else:
        for chunk in range(chunks):
            v = windows.load([start + area, chunk * BLOCK_IN])
            one = tl.dot(taps.load([2 * OUT, chunk * BLOCK_IN]), v.T, one, input_precision="tf32")
        for chunk in range(chunks):
            v = windows.load([start + 2 * area, chunk * BLOCK_IN])
            two = tl.dot(taps.load([4 * OUT, chunk * BLOCK_IN]), v.T, two, input_precision="tf32")
    upper = one + two
    lower = one - two
    if TWO:
        for chunk in range(chunks):
            v = windows.load([start, chunk * BLOCK_IN])
            upper = tl.dot(taps.load([0, chunk * BLOCK_IN]), v.T, upper, input_precision="tf32")
            v = windows.load([start + 3 * area, chunk * BLOCK_IN])
            lower = tl.dot(taps.load([6 * OUT, chunk * BLOCK_IN]), v.T, lower, input_precision="tf32")
    else:
        for chunk in range(chunks):
            v = windows.load([start, chunk * BLOCK_IN])
            upper = tl.dot(taps.load([0, chunk * BLOCK_IN]), v.T, upper, input_precision="tf32")
        for chunk in range(chunks):
            v = windows.load([start + 3 * area, chunk * BLOCK_IN])
            lower = tl.dot(taps.load([6 * OUT, chunk * BLOCK_IN]), v.T, lower, input_precision="tf32")
    index = first * 2 + tl.arange(0, BLOCK * 2)
    line = index // W
    j = index % W
    plane = number % count * 2
    all: tl.constexpr = deep * HIGH * wide
    result = y + (number // count).to(tl.int64) * (OUT * all) + plane * (HIGH * wide)
    out = tl.arange(0, OUT)
    inside = (line < HIGH) & (j < wide)
    put(upper, result, out, line * wide + j, inside, all, OUT, BLOCK)
    put(lower, result + HIGH * wide, out, line * wide + j, inside & (plane + 1 < deep), all, OUT, BLOCK)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=False):
        super().__init__()
        assert (tuple(kernel_size), stride, padding, dilation, groups, bias) == ((3, 5, 7), 1, 0, 1, 1, False)
        self.conv3d = torch.nn.Conv3d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x):
        x = x.contiguous()
        images, c, d, h, w = x.shape
        assert c == 3 and w % 2 == 0
        weight = self.conv3d.weight.contiguous()
        out = weight.shape[0]
        high, planes = h - 4, (d - 1) // 2
        block, block_in, some = CONFIG["BLOCK"], CONFIG["BLOCK_IN"], CONFIG["STACK_BLOCK"]
        many = triton.cdiv(images, CONFIG["PARTS"])
        # The last windows of all reach a little beyond the last column; they have no result.
        stacked = x.new_empty((many * planes * 4 * high * w + 8) * 16)
        arranged = x.new_empty(4 * 2 * out, 128)
        arrange[(4 * 2 * out,)](weight, arranged, C=c, OUT=out, num_warps=1)
        y = x.new_empty(images, out, d - 2, high, w - 6)
        options = {"maxnreg": CONFIG["REGISTERS"]} if CONFIG["REGISTERS"] else {}
        for first in range(0, images, many):
            part = x[first:first + many]
            count = part.shape[0] * planes
            stack_rows[(triton.cdiv(high * w, some), count)](
                part, stacked, C=c, D=d, H=h, W=w, HIGH=high, BLOCK=some, num_warps=CONFIG["STACK_WARPS"]
            )
            windows = stacked.as_strided((count * 4 * high * (w // 2), 128), (32, 1))
            convolve[(triton.cdiv(high * (w // 2), block), count)](
                TensorDescriptor.from_tensor(windows, [block, block_in]),
                TensorDescriptor.from_tensor(arranged, [2 * out, block_in]),
                y[first:first + many], OUT=out, D=d, HIGH=high, W=w, BLOCK=block, BLOCK_IN=block_in, TWO=CONFIG["TWO"],
                num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"], **options,
            )
        return y
