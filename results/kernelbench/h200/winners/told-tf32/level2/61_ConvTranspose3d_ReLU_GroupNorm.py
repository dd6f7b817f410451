"""The transposed convolution as one product with 27 shifted reads, ReLU and statistics on its tiles.

With two zeros after each row, column and plane the input has the result's shape, and a shifted tap is
a shifted tile, which the tensor memory accelerator reads as it stands. Each tile leaves mean and
squared deviations per channel behind; they are merged into one factor and shift per channel, and one
pass applies those.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def padded_channels_last(
    x, y, depth, height, width, MORE: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr
):
    """Channels side by side, and MORE zeros after each row, column and plane.

    What lies before the first of a row is then a zero of the row before: every shift is a shift of
    the flat position, which the tensor memory accelerator can do.
    """
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, C)
    column = p % (width + MORE)
    row = p // (width + MORE) % (height + MORE)
    plane = p // ((width + MORE) * (height + MORE))
    seen = (column < width) & (row < height) & (plane < depth)
    volume = depth * height * width
    at = (plane * height + row) * width + column
    v = tl.load(
        x + image * C * volume + c[:, None] * volume + at[None, :], mask=seen[None, :], other=0.0
    )
    padded = (depth + MORE) * (height + MORE) * (width + MORE)
    to = y + image * C * padded + p[:, None] * C + c[None, :]
    tl.store(to, tl.trans(v), mask=(p < padded)[:, None])


@triton.jit
def transposed_relu(
    x, taps, y, found, height, width, volume: tl.constexpr,
    C: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr,
):
    """Result o is the sum over k of tap k of x[o - k]."""
    tile = tl.program_id(0)
    image = tl.program_id(1)
    co = tl.arange(0, OUTPUTS)
    start = image * volume + tile * BP
    total = tl.zeros((OUTPUTS, BP), tl.float32)
    CHUNKS: tl.constexpr = C // BK
    for step in range(27 * CHUNKS):
        tap = step // CHUNKS
        k = step % CHUNKS * BK
        back = (tap // 9 * (height + 2) + tap // 3 % 3) * (width + 2) + tap % 3
        v = x.load([start - back, k])
        total = tl.dot(taps.load([tap * OUTPUTS, k]), v.T, total, input_precision="tf32")
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
def apply_affine(y, affine, volume: tl.constexpr, BLOCK: tl.constexpr):
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

    def forward(self, x):
        norm = self.group_norm
        batch, inputs, depth, height, width = x.shape
        taps = self.conv_transpose.weight.flatten(2).permute(2, 1, 0).contiguous()
        outputs = taps.shape[1]
        y = x.new_empty(batch, outputs, depth + 2, height + 2, width + 2)
        volume = y[0, 0].numel()
        last = x.new_empty(batch * volume, inputs)
        padded_channels_last[(triton.cdiv(volume, 128), batch)](
            x.contiguous(), last, depth, height, width, MORE=2, C=inputs, BLOCK=128, num_warps=8
        )
        block = 256
        tiles = triton.cdiv(volume, block)
        found = x.new_empty(batch, 2 * tiles, 2, outputs)
        transposed_relu[(tiles, batch)](
            TensorDescriptor.from_tensor(last, [block, 32]),
            TensorDescriptor.from_tensor(taps.view(-1, inputs), [outputs, 32]),
            y, found, height, width, volume=volume,
            C=inputs, OUTPUTS=outputs, BP=block, BK=32, num_warps=8, num_stages=4,
        )
        affine = x.new_empty(batch, outputs, 2)
        finish_statistics[(batch, norm.num_groups)](
            found, norm.weight, norm.bias, affine, volume, 2 * tiles, norm.eps,
            EACH=outputs // norm.num_groups, OUTPUTS=outputs,
            TILES=triton.next_power_of_2(2 * tiles), BP=block // 2, num_warps=4,
        )
        apply_affine[(triton.cdiv(volume, 4096), batch * outputs)](
            y, affine, volume=volume, BLOCK=4096, num_warps=8
        )
        return y
