"""The transposed convolution as one gathered product with 27 taps, ReLU and statistics on its tiles.

Each tile leaves count, mean and squared deviations per channel behind; they are merged into one
factor and shift per channel, and one pass applies those.
"""

import torch
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
def transposed_relu(
    x, taps, y, found, depth, height, width,
    C: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr,
):
    """Result o is the sum over k of tap k of x[o - k]."""
    tile = tl.program_id(0)
    image = tl.program_id(1)
    p = tile * BP + tl.arange(0, BP)
    columns = width + 2
    rows = height + 2
    volume = (depth + 2) * rows * columns
    column = p % columns
    row = p // columns % rows
    plane = p // (columns * rows)
    co = tl.arange(0, OUTPUTS)
    start = (((image * depth + plane) * height + row) * width + column) * C
    total = tl.zeros((OUTPUTS, BP), tl.float32)
    CHUNKS: tl.constexpr = C // BK
    for step in range(27 * CHUNKS):
        tap = step // CHUNKS
        a, b, c = tap // 9, tap // 3 % 3, tap % 3
        seen = (plane >= a) & (plane < depth + a) & (row >= b) & (row < height + b)
        seen = seen & (column >= c) & (column < width + c)
        k = step % CHUNKS * BK + tl.arange(0, BK)
        at = start - ((a * height + b) * width + c) * C
        v = tl.load(x + at[:, None] + k[None, :], mask=seen[:, None], other=0.0)
        t = tl.load(taps + tap * OUTPUTS * C + co[:, None] * C + k[None, :])
        total = tl.dot(t, v.T, total, input_precision="tf32")
    # One half of the positions after the other: fewer registers are in use at once.
    HALF: tl.constexpr = BP // 2
    left, right = tl.split(tl.permute(tl.reshape(total, (OUTPUTS, 2, HALF)), (0, 2, 1)))
    for half in tl.static_range(2):
        v = tl.maximum(left if half == 0 else right, 0.0)
        part = 2 * tile + half
        q = part * HALF + tl.arange(0, HALF)
        real = (q < volume)[None, :]
        at = y + image.to(tl.int64) * OUTPUTS * volume + co[:, None] * volume + q[None, :]
        tl.store(at, v, mask=real)
        count = tl.maximum(tl.minimum(volume - part * HALF, HALF), 1).to(tl.float32)
        mean = tl.sum(tl.where(real, v, 0.0), 1) / count
        apart = tl.where(real, v - mean[:, None], 0.0)
        out = found + (image * 2 * tl.num_programs(0) + part) * 2 * OUTPUTS + co
        tl.store(out, mean)
        tl.store(out + OUTPUTS, tl.sum(apart * apart, 1))


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
def apply_affine(y, affine, volume, BLOCK: tl.constexpr):
    plane = tl.program_id(1).to(tl.int64)
    factor = tl.load(affine + plane * 2)
    shift = tl.load(affine + plane * 2 + 1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + plane * volume + at, mask=at < volume, other=0.0)
    tl.store(y + plane * volume + at, v * factor + shift, mask=at < volume)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, groups, bias=False):
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, bias=bias
        )
        self.group_norm = torch.nn.GroupNorm(num_groups=groups, num_channels=out_channels)

    def arranged(self, x, weight):
        """Channels last, and the taps as [tap, output, input]."""
        batch, inputs = x.shape[:2]
        volume = x[0, 0].numel()
        last = torch.empty_like(x)
        channels_last[(triton.cdiv(volume, 128), batch)](
            x, last, volume, C=inputs, BLOCK=128, num_warps=8
        )
        return last, weight.flatten(2).permute(2, 1, 0).contiguous()

    def forward(self, x):
        norm = self.group_norm
        batch, inputs, depth, height, width = x.shape
        last, taps = self.arranged(x.contiguous(), self.conv_transpose.weight)
        outputs = taps.shape[1]
        y = x.new_empty(batch, outputs, depth + 2, height + 2, width + 2)
        volume = y[0, 0].numel()
        block = 256
        tiles = triton.cdiv(volume, block)
        found = x.new_empty(batch, 2 * tiles, 2, outputs)
        transposed_relu[(tiles, batch)](
            last, taps, y, found, depth, height, width,
            C=inputs, OUTPUTS=outputs, BP=block, BK=32, num_warps=8, num_stages=3,
        )
        affine = x.new_empty(batch, outputs, 2)
        finish_statistics[(batch, norm.num_groups)](
            found, norm.weight, norm.bias, affine, volume, 2 * tiles, norm.eps,
            EACH=outputs // norm.num_groups, OUTPUTS=outputs,
            TILES=triton.next_power_of_2(2 * tiles), BP=block // 2, num_warps=4,
        )
        apply_affine[(triton.cdiv(volume, 4096), batch * outputs)](
            y, affine, volume, BLOCK=4096, num_warps=8
        )
        return y
