"""The mean of a group norm needs each channel's mean and each group's variance, and no volume.

A channel's mean is a linear map of window sums of the input, which are added up in full precision: products of TF32 would
be off by more than the small differences between channels allow. Products of TF32 make the deviations from it alone, of
inputs less their mean, and both factors are rounded to nearest. A program walks through the planes; each plane is
gathered once for the three planes of results that need it, positions being the left operand, from registers.
"""

import torch
import triton
import triton.language as tl

SMALLEST = tl.constexpr(64)  # positions in a tile


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def window_means(x, means, D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, AREA: tl.constexpr,
                 INPUTS: tl.constexpr, K: tl.constexpr):
    """means[image, plane of taps, input * 9 + row * 3 + column]: of what each tap meets."""
    image = tl.program_id(0)
    channel = tl.program_id(1)
    count: tl.constexpr = (D - 2) * (H - 2) * (W - 2)
    p = tl.arange(0, AREA)
    inside = p < H * W
    source = x + (image * INPUTS + channel).to(tl.int64) * (D * H * W) + p
    middle = tl.zeros((AREA,), tl.float32)
    for d in range(2, D - 2):
        middle += tl.load(source + d * (H * W), mask=inside, other=0.0)
    first = tl.load(source, mask=inside, other=0.0)
    second = tl.load(source + H * W, mask=inside, other=0.0)
    last_but_one = tl.load(source + (D - 2) * (H * W), mask=inside, other=0.0)
    last = tl.load(source + (D - 1) * (H * W), mask=inside, other=0.0)
    for tap in tl.static_range(9):
        h = p // W - tap // 3
        w = p % W - tap % 3
        seen = (h >= 0) & (h < H - 2) & (w >= 0) & (w < W - 2)
        to = means + image * (3 * K) + channel * 9 + tap
        all_see = tl.sum(tl.where(seen, middle, 0.0), 0)
        a = tl.sum(tl.where(seen, first, 0.0), 0)
        b = tl.sum(tl.where(seen, second, 0.0), 0)
        c = tl.sum(tl.where(seen, last_but_one, 0.0), 0)
        e = tl.sum(tl.where(seen, last, 0.0), 0)
        tl.store(to, (all_see + a + b) / count)
        tl.store(to + K, (all_see + b + c) / count)
        tl.store(to + 2 * K, (all_see + c + e) / count)


@triton.jit
def taps_of_plane(weight, plane: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr,
                  COLUMNS: tl.constexpr, K: tl.constexpr):
    """[output, input * 9 + row * 3 + column] of one plane of taps, with zeros for what there is not."""
    co = tl.arange(0, COLUMNS)[:, None]
    k = tl.arange(0, K)[None, :]
    at = weight + co * 27 * INPUTS + k // 9 * 27 + plane * 9 + k % 9
    return tl.load(at, mask=(co < OUTPUTS) & (k < 9 * INPUTS), other=0.0)


@triton.autotune(
    configs=[
        triton.Config({"BP": block}, num_warps=warps, num_stages=stages)
        for block, warps, stages in ((128, 4, 3), (128, 4, 2), (256, 8, 3), (256, 8, 2), (64, 4, 3), (128, 8, 3))
    ],
    key=[],
)
@triton.jit
def sum_squares(
    x, weight, means, found,
    D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, BLOCKS: tl.constexpr,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, BP: tl.constexpr,
):
    """Of each channel's deviations from its mean. Positions are those of the input: the last two of a row have no
    result."""
    image = tl.program_id(1)
    q = tl.program_id(0) * BP + tl.arange(0, BP)
    k = tl.arange(0, K)
    inputs = k < 9 * INPUTS
    near = taps_of_plane(weight, 0, INPUTS, OUTPUTS, COLUMNS, K)
    middle = taps_of_plane(weight, 1, INPUTS, OUTPUTS, COLUMNS, K)
    far = taps_of_plane(weight, 2, INPUTS, OUTPUTS, COLUMNS, K)
    # An input's mean is that in the middle of its windows.
    of_input = tl.load(means + image * (3 * K) + K + k // 9 * 9 + 4, mask=inputs, other=0.0)
    centre = tl.zeros((COLUMNS,), tl.float32)
    of_taps = tl.load(means + image * (3 * K) + k, mask=inputs, other=0.0) - of_input
    centre += tl.sum(near * of_taps[None, :], 1)
    of_taps = tl.load(means + image * (3 * K) + K + k, mask=inputs, other=0.0) - of_input
    centre += tl.sum(middle * of_taps[None, :], 1)
    of_taps = tl.load(means + image * (3 * K) + 2 * K + k, mask=inputs, other=0.0) - of_input
    centre += tl.sum(far * of_taps[None, :], 1)
    near = tl.trans(rounded(near))
    middle = tl.trans(rounded(middle))
    far = tl.trans(rounded(far))
    tap = (k // 9 * D * H + k // 3 % 3) * W + k % 3
    seen = inputs[:, None] & (q < (H - 2) * W - 2)[None, :]
    source = x + image.to(tl.int64) * (INPUTS * D * H * W) + (tap[:, None] + q[None, :])
    older = tl.zeros((BP, COLUMNS), tl.float32)
    newer = tl.zeros((BP, COLUMNS), tl.float32)
    squares = tl.zeros((BP, COLUMNS), tl.float32)
    for d in range(D):
        v = tl.load(source + d * (H * W), mask=seen, other=0.0)
        v = tl.trans(rounded(v - of_input[:, None]))
        # What is used at once comes last: the compiler would make the tensor cores wait after each instruction.
        between = tl.dot(v, middle, newer, input_precision="tf32")
        newer = tl.dot(v, near, input_precision="tf32")
        done = tl.dot(v, far, older, input_precision="tf32")
        older = between
        gap = tl.where(d >= 2, done - centre[None, :], 0.0)
        squares += gap * gap
    there = (q // W < H - 2) & (q % W < W - 2)
    part = tl.sum(tl.where(there[:, None], squares, 0.0), 0)
    # Room is left for as many parts as the smallest tiles make.
    for share in tl.static_range(BP // SMALLEST):
        block = tl.program_id(0) * (BP // SMALLEST) + share
        to = found + (image * BLOCKS + block) * COLUMNS + tl.arange(0, COLUMNS)
        tl.store(to, part if share == 0 else tl.zeros((COLUMNS,), tl.float32), mask=block < BLOCKS)


@triton.jit
def normalised_mean(
    found, means, weight, bias, gamma, beta, y, eps, SIZE: tl.constexpr, BLOCKS: tl.constexpr,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, EACH: tl.constexpr,
):
    image = tl.program_id(0)
    co = tl.arange(0, COLUMNS)
    k = tl.arange(0, K)
    channel = co < OUTPUTS
    inputs = k < 9 * INPUTS
    mean = tl.load(bias + co, mask=channel, other=0.0)
    for plane in tl.static_range(3):
        of_taps = tl.load(means + image * (3 * K) + plane * K + k, mask=inputs, other=0.0)
        mean += tl.sum(taps_of_plane(weight, plane, INPUTS, OUTPUTS, COLUMNS, K) * of_taps[None, :], 1)
    square = tl.zeros((COLUMNS,), tl.float32)
    for block in range(BLOCKS):
        square += tl.load(found + (image * BLOCKS + block) * COLUMNS + co)
    # Channels of one group see each other through a mask: groups need not be powers of two.
    group = co // EACH
    same = (group[:, None] == group[None, :]) & channel[None, :]
    total = tl.sum(tl.where(same, mean[None, :], 0.0), 1) / EACH
    off = mean[None, :] - total[:, None]
    spread = tl.sum(tl.where(same, square[None, :] / SIZE + off * off, 0.0), 1) / EACH
    g = tl.load(gamma + co, mask=channel, other=0.0)
    b = tl.load(beta + co, mask=channel, other=0.0)
    value = (mean - total) / tl.sqrt(spread + eps) * g + b
    tl.store(y + image, tl.sum(tl.where(channel, value, 0.0), 0) / OUTPUTS)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, num_groups):
        super().__init__()
        assert kernel_size == 3
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        x = x.contiguous()
        weight = self.conv.weight.contiguous()
        batch, inputs, depth, height, width = x.shape
        outputs = weight.shape[0]
        columns = triton.next_power_of_2(outputs)
        k = triton.next_power_of_2(9 * inputs)
        means = x.new_empty(batch, 3, k)
        window_means[(batch, inputs)](
            x, means, D=depth, H=height, W=width, AREA=triton.next_power_of_2(height * width),
            INPUTS=inputs, K=k, num_warps=8,
        )
        blocks = triton.cdiv((height - 2) * width, SMALLEST.value)
        found = x.new_empty(batch, blocks, columns)

        def grid(meta):
            return (triton.cdiv((height - 2) * width, meta["BP"]), batch)

        sum_squares[grid](
            x, weight, means, found, D=depth, H=height, W=width, BLOCKS=blocks,
            INPUTS=inputs, OUTPUTS=outputs, COLUMNS=columns, K=k,
        )
        y = x.new_empty(batch)
        norm = self.group_norm
        normalised_mean[(batch,)](
            found, means, weight, self.conv.bias, norm.weight, norm.bias, y, norm.eps,
            SIZE=(depth - 2) * (height - 2) * (width - 2), BLOCKS=blocks, INPUTS=inputs, OUTPUTS=outputs,
            COLUMNS=columns, K=k, EACH=outputs // norm.num_groups, num_warps=4,
        )
        return y
