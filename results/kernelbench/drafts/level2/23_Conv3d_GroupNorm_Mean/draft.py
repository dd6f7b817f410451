"""The mean of a group norm needs each channel's mean and each group's variance, and no volume.

A channel's mean is a linear map of window sums of the input, added up in full precision; sums of squares come from the
convolution itself, as products with planes of taps.

The program before gathered 27 numbers for each position and plane, and waited for the means before it could begin. Here a
position stands for DOWN results below each other, whose windows overlap: with five, 63 of 64 numbers gathered and 120 of
128 columns of taps are of use, and two thirds of the gathering is saved. The squares are of deviations from any number
near the mean (that of some samples of the input), and corrected at the end, so that means and squares are one launch.
"""

import torch
import triton
import triton.language as tl

CONFIG = {"DOWN": 1, "BP": 64, "PLANES": 22, "WARPS": 4, "STAGES": 3, "REGISTERS": 0, "LAST": False}


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def window_means(image, channel, x, means, D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, AREA: tl.constexpr,
                 INPUTS: tl.constexpr, K: tl.constexpr):
    """means[image, plane of taps, input * 9 + row * 3 + column]: of what each tap meets."""
    count: tl.constexpr = (D - 2) * (H - 2) * (W - 2)
    p = tl.arange(0, AREA)
    inside = p < H * W
    source = x + (image * INPUTS + channel).to(tl.int64) * (D * H * W) + p
    first = tl.load(source, mask=inside, other=0.0)
    second = tl.load(source + H * W, mask=inside, other=0.0)
    last_but_one = tl.load(source + (D - 2) * (H * W), mask=inside, other=0.0)
    last = tl.load(source + (D - 1) * (H * W), mask=inside, other=0.0)
    middle = tl.zeros((AREA,), tl.float32)
    for d in tl.range(2, D - 2, loop_unroll_factor=4):
        middle += tl.load(source + d * (H * W), mask=inside, other=0.0)
    near = middle + first + second
    mid = middle + second + last_but_one
    far = middle + last_but_one + last
    for tap in tl.static_range(9):
        h = p // W - tap // 3
        w = p % W - tap % 3
        seen = (h >= 0) & (h < H - 2) & (w >= 0) & (w < W - 2)
        to = means + image * (3 * K) + channel * 9 + tap
        tl.store(to, tl.sum(tl.where(seen, near, 0.0), 0) / count)
        tl.store(to + K, tl.sum(tl.where(seen, mid, 0.0), 0) / count)
        tl.store(to + 2 * K, tl.sum(tl.where(seen, far, 0.0), 0) / count)


@triton.jit
def shifted_taps(weight, plane: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr,
                 DOWN: tl.constexpr, K: tl.constexpr):
    """[(input, row, column), (result below, output)] of one plane of taps: zeros where a row is not in a window."""
    n = tl.arange(0, COLUMNS)[:, None]
    k = tl.arange(0, K)[None, :]
    co = n % OUTPUTS
    ci = k // (3 * (DOWN + 2))
    tap = k // 3 % (DOWN + 2) - n // OUTPUTS
    there = (n < DOWN * OUTPUTS) & (ci < INPUTS) & (tap >= 0) & (tap < 3)
    at = weight + (co * INPUTS + ci) * 27 + plane * 9 + tap * 3 + k % 3
    return tl.trans(rounded(tl.load(at, mask=there, other=0.0)))


@triton.jit
def sum_squares(
    part, parts, image, x, weight, centres, found,
    D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr,
    COLUMNS: tl.constexpr, K: tl.constexpr, DOWN: tl.constexpr, BP: tl.constexpr, TILES: tl.constexpr,
    PLANES: tl.constexpr,
):
    """Of what the taps make of the input less its centre."""
    p = part % TILES * BP + tl.arange(0, BP)
    begin = part // TILES * PLANES
    VOLUME: tl.constexpr = D * H * W
    source = x + image.to(tl.int64) * (INPUTS * VOLUME)
    k = tl.arange(0, K)
    ci = k // (3 * (DOWN + 2))
    centre = tl.zeros((K,), tl.float32)
    for channel in tl.static_range(INPUTS):
        # The same samples for all programs of an image.
        sample = (tl.arange(0, 256) * (VOLUME // 256 if VOLUME >= 256 else 1)) % VOLUME
        of_channel = tl.sum(tl.load(source + channel * VOLUME + sample), 0) / 256
        centre = tl.where(ci == channel, of_channel, centre)
        if part == 0:
            tl.store(centres + image * INPUTS + channel, of_channel)
    near = shifted_taps(weight, 0, INPUTS, OUTPUTS, COLUMNS, DOWN, K)
    middle = shifted_taps(weight, 1, INPUTS, OUTPUTS, COLUMNS, DOWN, K)
    far = shifted_taps(weight, 2, INPUTS, OUTPUTS, COLUMNS, DOWN, K)
    # What is gathered beyond the end is some number inside: no result uses it.
    k = tl.where(ci < INPUTS, k, 0)
    top = p // (W - 2) * DOWN
    column = p % (W - 2)
    row = tl.minimum(top[None, :] + (k // 3 % (DOWN + 2))[:, None], H - 1)
    places = (k // (3 * (DOWN + 2)) * VOLUME + k % 3)[:, None] + row * W + column[None, :]
    # Neighbours read neighbours but at the ends of rows: said, so that threads are laid along positions.
    places = tl.max_contiguous(places, [1, 16])
    older = tl.zeros((BP, COLUMNS), tl.float32)
    newer = tl.zeros((BP, COLUMNS), tl.float32)
    squares = tl.zeros((BP, COLUMNS), tl.float32)
    for i in range(PLANES + 2):
        v = tl.load(source + tl.minimum(begin + i, D - 1) * (H * W) + places)
        v = tl.trans(rounded(v - centre[:, None]))
        # What is used at once comes last: the compiler would make the tensor cores wait after each instruction.
        between = tl.dot(v, middle, newer, input_precision="tf32")
        newer = tl.dot(v, near, input_precision="tf32")
        done = tl.dot(v, far, older, input_precision="tf32")
        older = between
        done = tl.where((i >= 2) & (begin + i < D), done, 0.0)
        squares += done * done
    n = tl.arange(0, COLUMNS)
    there = (top[:, None] + (n // OUTPUTS)[None, :] < H - 2) & (n < DOWN * OUTPUTS)[None, :]
    to = found + (image * parts + part) * COLUMNS + n
    tl.store(to, tl.sum(tl.where(there, squares, 0.0), 0))


@triton.jit
def means_and_squares(
    x, weight, means, centres, found, images,
    D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, AREA: tl.constexpr, INPUTS: tl.constexpr,
    OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, K_MEANS: tl.constexpr, DOWN: tl.constexpr,
    BP: tl.constexpr, TILES: tl.constexpr, PLANES: tl.constexpr, PARTS: tl.constexpr, LAST: tl.constexpr,
):
    """Neither needs the other: one launch for both."""
    pid = tl.program_id(0)
    number = pid - images * PARTS if LAST else pid
    if (number >= 0) & (number < images * INPUTS):
        window_means(number // INPUTS, number % INPUTS, x, means, D, H, W, AREA, INPUTS, K_MEANS)
    else:
        number = pid if LAST else pid - images * INPUTS
        sum_squares(number % PARTS, PARTS, number // PARTS, x, weight, centres, found, D, H, W, INPUTS, OUTPUTS,
                    COLUMNS, K, DOWN, BP, TILES, PLANES)


@triton.jit
def taps_of_plane(weight, plane: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr,
                  COLUMNS: tl.constexpr, K: tl.constexpr):
    """[output, input * 9 + row * 3 + column] of one plane of taps, with zeros for what there is not."""
    co = tl.arange(0, COLUMNS)[:, None]
    k = tl.arange(0, K)[None, :]
    at = weight + co * 27 * INPUTS + k // 9 * 27 + plane * 9 + k % 9
    return tl.load(at, mask=(co < OUTPUTS) & (k < 9 * INPUTS), other=0.0)


@triton.jit
def normalised_mean(
    found, means, centres, weight, bias, gamma, beta, y, eps, SIZE: tl.constexpr, PARTS: tl.constexpr,
    STRIDE: tl.constexpr, DOWN: tl.constexpr, SUMS: tl.constexpr,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, EACH: tl.constexpr,
):
    image = tl.program_id(0)
    co = tl.arange(0, COLUMNS)
    k = tl.arange(0, K)
    channel = co < OUTPUTS
    inputs = k < 9 * INPUTS
    mean = tl.zeros((COLUMNS,), tl.float32)
    off_centre = tl.zeros((COLUMNS,), tl.float32)
    of_input = tl.load(centres + image * INPUTS + k // 9, mask=inputs, other=0.0)
    for plane in tl.static_range(3):
        of_taps = tl.load(means + image * (3 * K) + plane * K + k, mask=inputs, other=0.0)
        taps = taps_of_plane(weight, plane, INPUTS, OUTPUTS, COLUMNS, K)
        mean += tl.sum(taps * of_taps[None, :], 1)
        off_centre += tl.sum(taps * (of_taps - of_input)[None, :], 1)
    mean += tl.load(bias + co, mask=channel, other=0.0)
    sums = tl.arange(0, SUMS)[:, None]
    at = found + (image * PARTS + sums // DOWN) * STRIDE + sums % DOWN * OUTPUTS + co[None, :]
    square = tl.sum(tl.load(at, mask=(sums < PARTS * DOWN) & channel[None, :], other=0.0), 0)
    square = square / SIZE - off_centre * off_centre
    # Channels of one group see each other through a mask: groups need not be powers of two.
    group = co // EACH
    same = (group[:, None] == group[None, :]) & channel[None, :]
    total = tl.sum(tl.where(same, mean[None, :], 0.0), 1) / EACH
    off = mean[None, :] - total[:, None]
    inner = tl.maximum(tl.sum(tl.where(same, square[None, :], 0.0), 1), 0.0)
    spread = (inner + tl.sum(tl.where(same, off * off, 0.0), 1)) / EACH
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
        down, block, planes = CONFIG["DOWN"], CONFIG["BP"], CONFIG["PLANES"]
        columns = max(16, triton.next_power_of_2(down * outputs))
        k = max(16, triton.next_power_of_2(3 * (down + 2) * inputs))
        k_means = triton.next_power_of_2(9 * inputs)
        tiles = triton.cdiv(triton.cdiv(height - 2, down) * (width - 2), block)
        parts = tiles * triton.cdiv(depth - 2, planes)
        means = x.new_empty(batch, 3, k_means)
        centres = x.new_empty(batch, inputs)
        found = x.new_empty(batch, parts, columns)
        means_and_squares[(batch * (inputs + parts),)](
            x, weight, means, centres, found, batch, D=depth, H=height, W=width,
            AREA=triton.next_power_of_2(height * width), INPUTS=inputs, OUTPUTS=outputs, COLUMNS=columns, K=k,
            K_MEANS=k_means, DOWN=down, BP=block, TILES=tiles, PLANES=planes, PARTS=parts, LAST=CONFIG["LAST"],
            num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"],
            **({"maxnreg": CONFIG["REGISTERS"]} if CONFIG["REGISTERS"] else {}),
        )
        y = x.new_empty(batch)
        norm = self.group_norm
        normalised_mean[(batch,)](
            found, means, centres, weight, self.conv.bias, norm.weight, norm.bias, y, norm.eps,
            SIZE=(depth - 2) * (height - 2) * (width - 2), PARTS=parts, STRIDE=columns, DOWN=down,
            SUMS=triton.next_power_of_2(parts * down), INPUTS=inputs, OUTPUTS=outputs,
            COLUMNS=triton.next_power_of_2(outputs), K=k_means, EACH=outputs // norm.num_groups, num_warps=4,
        )
        return y
