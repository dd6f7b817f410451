"""A transposed convolution as products of weights with windows of a channels-last, padded copy of
the images. Nothing is masked inside the loop."""

import torch
import triton
import triton.language as tl

TOGETHER = 1
BLOCK = 128
BLOCK_IN = 32
STAGE_BLOCK = 64


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def stage(x, staged, C: tl.constexpr, SIZE: tl.constexpr, PADDED: tl.constexpr, BEFORE: tl.constexpr,
          BLOCK: tl.constexpr):
    """Copy images to channels-last order with zeros around them. Sizes are (depth, height, width)."""
    blocks: tl.constexpr = (PADDED[2] + BLOCK - 1) // BLOCK
    line = tl.program_id(0) // blocks  # of the padded images, all one below the other
    w = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    image = line // (PADDED[0] * PADDED[1])
    d = line // PADDED[1] % PADDED[0] - BEFORE[0]
    h = line % PADDED[1] - BEFORE[1]
    c = tl.arange(0, C)
    at = w - BEFORE[2]
    there = (d >= 0) & (d < SIZE[0]) & (h >= 0) & (h < SIZE[1]) & (at >= 0) & (at < SIZE[2])
    plane: tl.constexpr = SIZE[0] * SIZE[1] * SIZE[2]
    source = x + image.to(tl.int64) * (C * plane) + (d * SIZE[1] + h) * SIZE[2]
    value = tl.load(source + c[:, None] * plane + at[None, :], mask=there[None, :], other=0.0,
                    eviction_policy="evict_first")
    target = staged + line.to(tl.int64) * (PADDED[2] * C)
    tl.store(target + w[:, None] * C + c[None, :], tl.trans(rounded(value)), mask=(w < PADDED[2])[:, None])


@triton.jit
def arrange(weight, arranged, C: tl.constexpr, OUT: tl.constexpr, TAPS: tl.constexpr, TOGETHER: tl.constexpr,
            TRANSPOSED: tl.constexpr, BLOCK_IN: tl.constexpr):
    """Write the weights step by step, as the products take them. A product gives TOGETHER neighbours of the
    result, so a step is one place of the window that they have in common, and BLOCK_IN channels."""
    chunks: tl.constexpr = C // BLOCK_IN
    window: tl.constexpr = TAPS[2] + TOGETHER - 1
    step = tl.program_id(0)
    row = tl.arange(0, TOGETHER * OUT)[:, None]
    channel = step % chunks * BLOCK_IN + tl.arange(0, BLOCK_IN)[None, :]
    place = step // chunks % window
    d = step // (chunks * window * TAPS[1])
    h = step // (chunks * window) % TAPS[1]
    out = row % OUT
    w = place - row // OUT
    there = (w >= 0) & (w < TAPS[2])
    if TRANSPOSED:
        tap = ((TAPS[0] - 1 - d) * TAPS[1] + TAPS[1] - 1 - h) * TAPS[2] + TAPS[2] - 1 - w
        source = (channel * OUT + out) * (TAPS[0] * TAPS[1] * TAPS[2]) + tap
    else:
        tap = (d * TAPS[1] + h) * TAPS[2] + w
        source = (out * C + channel) * (TAPS[0] * TAPS[1] * TAPS[2]) + tap
    value = tl.load(weight + source, mask=there, other=0.0)
    target = arranged + step * (TOGETHER * OUT * BLOCK_IN) + row * BLOCK_IN + tl.arange(0, BLOCK_IN)[None, :]
    tl.store(target, rounded(value))


@triton.jit
def convolve(staged, arranged, y, IMAGES: tl.constexpr, C: tl.constexpr, OUT: tl.constexpr, PADDED: tl.constexpr,
             RESULT: tl.constexpr, TAPS: tl.constexpr, DILATION: tl.constexpr, TOGETHER: tl.constexpr,
             BLOCK: tl.constexpr, BLOCK_IN: tl.constexpr):
    """Multiply the arranged weights with BLOCK windows, each of which gives TOGETHER pixels of the result that
    lie DILATION[2] apart."""
    chunks: tl.constexpr = C // BLOCK_IN
    window: tl.constexpr = TAPS[2] + TOGETHER - 1
    reach: tl.constexpr = TOGETHER * DILATION[2]
    wide: tl.constexpr = (RESULT[2] + reach - 1) // reach * DILATION[2]  # windows of a line
    steps: tl.constexpr = TAPS[0] * TAPS[1] * window * chunks
    rows: tl.constexpr = TOGETHER * OUT
    group = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image = tl.minimum(group // (RESULT[0] * RESULT[1] * wide), IMAGES - 1)
    d = group // (RESULT[1] * wide) % RESULT[0]
    h = group // wide % RESULT[1]
    w = group % wide // DILATION[2] * reach + group % DILATION[2]
    pixel = ((image * PADDED[0] + d) * PADDED[1] + h) * PADDED[2] + w
    k = tl.arange(0, BLOCK_IN)
    windows = staged + pixel.to(tl.int64)[:, None] * C + k[None, :]
    left = arranged + tl.arange(0, rows)[:, None] * BLOCK_IN + k[None, :]
    sums = tl.zeros((rows, BLOCK), tl.float32)
    for step in range(steps):
        chunk = step % chunks
        place = step // chunks % window
        tap_h = step // (chunks * window) % TAPS[1]
        tap_d = step // (chunks * window * TAPS[1])
        far = (tap_d * DILATION[0] * PADDED[1] + tap_h * DILATION[1]) * PADDED[2] + place * DILATION[2]
        patch = tl.load(windows + (far * C + chunk * BLOCK_IN))
        weights = tl.load(left + step * (rows * BLOCK_IN))
        sums = tl.dot(weights, tl.trans(patch), sums, input_precision="tf32")
    # Neighbours that were computed together are stored side by side.
    if TOGETHER > 1:
        sums = tl.reshape(tl.permute(tl.reshape(sums, (TOGETHER, OUT, BLOCK)), (1, 2, 0)), (OUT, BLOCK * TOGETHER))
    index = tl.arange(0, BLOCK * TOGETHER)
    group = tl.program_id(0) * BLOCK + index // TOGETHER
    image = group // (RESULT[0] * RESULT[1] * wide)
    line = group // wide % (RESULT[0] * RESULT[1])
    w = group % wide // DILATION[2] * reach + group % DILATION[2] + index % TOGETHER * DILATION[2]
    inside = (image < IMAGES) & (w < RESULT[2])
    area: tl.constexpr = RESULT[0] * RESULT[1] * RESULT[2]
    start = image.to(tl.int64) * (OUT * area) + (line * RESULT[2] + w)
    out = tl.arange(0, OUT)
    tl.store(y + start[None, :] + out[:, None].to(tl.int64) * area, sums, mask=inside[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=False):
        super().__init__()
        self.conv1d_transpose = torch.nn.ConvTranspose1d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x):
        x = x.contiguous()
        weight = self.conv1d_transpose.weight
        images, c = x.shape[:2]
        size = (1,) * (5 - x.dim()) + tuple(x.shape[2:])
        out = weight.shape[1]
        taps, dilation, before = (1, 1, 3), (1, 1, 1), (0, 0, 2)
        together, block, block_in = TOGETHER, BLOCK, BLOCK_IN
        reach = together * dilation[2]
        result = tuple(s + 2 * b - (t - 1) * a for s, b, t, a in zip(size, before, taps, dilation))
        wide = triton.cdiv(result[2], reach) * reach + (taps[2] - 1) * dilation[2]  # all that windows see
        padded = (size[0] + 2 * before[0], size[1] + 2 * before[1], wide)
        staged = x.new_empty(images, *padded, c)
        blocks = triton.cdiv(padded[2], STAGE_BLOCK)
        stage[(images * padded[0] * padded[1] * blocks,)](
            x, staged, C=c, SIZE=size, PADDED=padded, BEFORE=before, BLOCK=STAGE_BLOCK, num_warps=4
        )
        steps = taps[0] * taps[1] * (taps[2] + together - 1) * (c // block_in)
        arranged = x.new_empty(steps, together * out, block_in)
        arrange[(steps,)](
            weight, arranged, C=c, OUT=out, TAPS=taps, TOGETHER=together, TRANSPOSED=True, BLOCK_IN=block_in
        )
        y = x.new_empty(images, out, *result[5 - x.dim():])
        groups = images * result[0] * result[1] * triton.cdiv(result[2], reach) * dilation[2]
        convolve[(triton.cdiv(groups, block),)](
            staged, arranged, y, IMAGES=images, C=c, OUT=out, PADDED=padded, RESULT=result, TAPS=taps,
            DILATION=dilation, TOGETHER=together, BLOCK=block, BLOCK_IN=block_in, num_warps=4, num_stages=3
        )
        return y
