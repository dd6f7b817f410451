"""The volume that is normalised and averaged is never made: its mean and its energy are enough.

The mean of what is normalised is the normalised mean, and the mean of a full convolution is that of
the input times the sum of the taps. The variance needs the sum of squares. By Parseval's theorem it
can be taken from the Fourier transform along rows and columns, where the convolution with 25 taps
in each plane is one product: planes are transformed as matrix products, frequencies are convolved
along the planes alone, and the squares are summed on the tiles. Frequency zero, which holds the
mean, is made in full precision, so that nothing is lost when its square is subtracted.
What depends on the taps alone, their transform and their sums, is made when they change, and kept.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def make_waves(
    waves, count, H: tl.constexpr, W: tl.constexpr, FH: tl.constexpr, FW: tl.constexpr,
    HALF: tl.constexpr, BLOCK: tl.constexpr,
):
    """waves[0 or 1, f, position]: cosine and sine; half of the columns' frequencies are enough."""
    f = tl.program_id(0)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    turns = (f // HALF * (p // W) % FH).to(tl.float32) / FH
    turns += (f % HALF * (p % W) % FW).to(tl.float32) / FW
    angle = 6.283185307179586 * turns
    at = waves + f * H * W + p
    tl.store(at, tl.cos(angle), mask=p < H * W)
    tl.store(at + count * H * W, tl.sin(angle), mask=p < H * W)


@triton.jit
def sum_planes(x, sums, area, BLOCK: tl.constexpr):
    plane = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, area, BLOCK):
        p = start + tl.arange(0, BLOCK)
        total += tl.load(x + plane * area + p, mask=p < area, other=0.0)
    tl.store(sums + plane, tl.sum(total, 0))


@triton.jit
def sum_taps(weight, sums, count, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for t in tl.static_range(TAPS):
        total += tl.load(weight + at * TAPS + t, mask=at < count, other=0.0)
    tl.store(sums + at, total, mask=at < count)


@triton.jit
def transform_planes(
    x, waves, out, images, depth, count,
    C: tl.constexpr, AREA: tl.constexpr, BF: tl.constexpr, BK: tl.constexpr,
):
    """All channels of two planes. Each result is stored as two rows, (re, -im) and (im, re), whose
    products with (re, im) of the taps are the real and the imaginary part."""
    image = tl.program_id(1) // (depth // 2)
    m = tl.arange(0, 2 * C)
    channel = m % C
    plane = tl.program_id(1) % (depth // 2) * 2 + m // C
    f = tl.program_id(0) * BF + tl.arange(0, BF)
    real = tl.zeros((2 * C, BF), tl.float32)
    imaginary = tl.zeros((2 * C, BF), tl.float32)
    start = x + ((image * C + channel) * depth + plane)[:, None] * AREA
    wave = waves + f[:, None] * AREA
    known = (f < count)[:, None]
    for first in range(0, AREA, BK):
        k = (first + tl.arange(0, BK))[None, :]
        v = tl.load(start + k)
        cosine = tl.load(wave + k, mask=known, other=0.0)
        sine = tl.load(wave + count * AREA + k, mask=known, other=0.0)
        real = tl.dot(v, cosine.T, real, input_precision="tf32")
        imaginary = tl.dot(v, sine.T, imaginary, input_precision="tf32")
    row = ((f[None, :] * depth + plane[:, None]) * images + image) * 2
    at = out + row * 2 * C + channel[:, None]
    known = (f < count)[None, :]
    tl.store(at, real, mask=known)
    tl.store(at + C, -imaginary, mask=known)
    tl.store(at + 2 * C, imaginary, mask=known)
    tl.store(at + 3 * C, real, mask=known)


@triton.jit
def transform_taps(
    weight, waves, out, count, planes,
    C: tl.constexpr, OUTPUTS: tl.constexpr, SIDE: tl.constexpr, W: tl.constexpr,
    AREA: tl.constexpr, BF: tl.constexpr, BK: tl.constexpr,
):
    """All inputs of one output and plane of taps; stored as rows of (re, im)."""
    output = tl.program_id(1) // planes
    plane = tl.program_id(1) % planes
    ci = tl.arange(0, C)
    t = tl.arange(0, BK)
    f = tl.program_id(0) * BF + tl.arange(0, BF)
    tap = (t < SIDE * SIDE)[None, :]
    v = tl.load(
        weight + ((ci[:, None] * OUTPUTS + output) * planes + plane) * SIDE * SIDE + t[None, :],
        mask=tap, other=0.0,
    )
    wave = waves + f[:, None] * AREA + (t // SIDE * W + t % SIDE)[None, :]
    known = (f < count)[:, None] & tap
    cosine = tl.load(wave, mask=known, other=0.0)
    sine = tl.load(wave + count * AREA, mask=known, other=0.0)
    real = tl.dot(v, cosine.T, input_precision="tf32")
    imaginary = tl.dot(v, sine.T, input_precision="tf32")
    at = out + ((f[None, :] * planes + plane) * OUTPUTS + output) * 2 * C + ci[:, None]
    known = (f < count)[None, :]
    tl.store(at, real, mask=known)
    tl.store(at + C, imaginary, mask=known)


@triton.jit
def sum_squares(
    planes, taps, energy, ROWS, SHIFT, total,
    K: tl.constexpr, OUTPUTS: tl.constexpr, SIDE: tl.constexpr, FW: tl.constexpr,
    HALF: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
):
    """The convolution along the planes at one frequency; rows of one plane lie SHIFT apart."""
    f = tl.program_id(1) + 1
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    co = tl.arange(0, OUTPUTS)
    result = tl.zeros((BM, OUTPUTS), tl.float32)
    CHUNKS: tl.constexpr = K // BK
    for step in range(SIDE * CHUNKS):
        tap = step // CHUNKS
        k = (step % CHUNKS * BK + tl.arange(0, BK))[None, :]
        row = m - tap * SHIFT
        v = tl.load(
            planes + (f * ROWS + row)[:, None] * K + k,
            mask=((row >= 0) & (row < ROWS))[:, None], other=0.0,
        )
        t = tl.load(taps + ((f * SIDE + tap) * OUTPUTS + co)[:, None] * K + k)
        result = tl.dot(v, t.T, result, input_precision="tf32")
    # All columns but the first, and the middle one if there is one, stand for their mirror images.
    column = f % HALF
    times = tl.where((column == 0) | (2 * column == FW), 1.0, 2.0)
    part = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    tl.store(energy + co * total + part, tl.sum(result * result, 0) * times)


@triton.jit
def convolve_sums(
    sums, taps, found, channels, depth,
    C: tl.constexpr, OUTPUTS: tl.constexpr, SIDE: tl.constexpr, ROWS: tl.constexpr,
):
    """Frequency zero of one image, in full precision: its sum, and the sum of its squares."""
    image = tl.program_id(0)
    o = tl.arange(0, ROWS)[:, None]
    ci = tl.arange(0, C)
    co = tl.program_id(1) * OUTPUTS + tl.arange(0, OUTPUTS)
    total = tl.zeros((ROWS, OUTPUTS), tl.float32)
    for tap in range(SIDE):
        d = o - tap
        v = tl.load(
            sums + (image * C + ci[None, :]) * depth + d, mask=(d >= 0) & (d < depth), other=0.0
        )
        t = tl.load(taps + (ci[:, None] * channels + co[None, :]) * SIDE + tap)
        total = tl.dot(v, t, total, input_precision="ieee")
    tl.store(found + (image * 2) * channels + co, tl.sum(total, 0))
    tl.store(found + (image * 2 + 1) * channels + co, tl.sum(total * total, 0))


@triton.jit
def normalise_means(
    found, energy, bias, gamma, beta, running_mean, running_var, batches, y,
    images, channels, area, volume, parts, scale, eps, momentum,
    IMAGES: tl.constexpr, PARTS: tl.constexpr,
):
    c = tl.program_id(0)
    n = tl.arange(0, IMAGES)
    inside = n < images
    means = tl.load(found + n * 2 * channels + c, mask=inside, other=0.0) / volume
    squares = tl.load(found + (n * 2 + 1) * channels + c, mask=inside, other=0.0)
    p = tl.arange(0, PARTS)
    others = tl.load(energy + c * parts + p, mask=p < parts, other=0.0)
    count = volume * 1.0 * images
    mean = tl.sum(means, 0) / images
    variance = (tl.sum(squares, 0) + tl.sum(others, 0)) / area / count - mean * mean
    variance = tl.maximum(variance, 0.0) * scale * scale
    factor = scale / tl.sqrt(variance + eps) * tl.load(gamma + c)
    tl.store(y + n * channels + c, (means - mean) * factor + tl.load(beta + c), mask=inside)
    old = tl.load(running_mean + c)
    tl.store(running_mean + c, old + momentum * ((mean + tl.load(bias + c)) * scale - old))
    old = tl.load(running_var + c)
    tl.store(running_var + c, old + momentum * (variance * (count / (count - 1.0)) - old))
    if c == 0:
        tl.store(batches, tl.load(batches) + 1)


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, scale_factor, eps=1e-5, momentum=0.1
    ):
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor
        self.batch_norm = torch.nn.BatchNorm3d(out_channels, eps=eps, momentum=momentum)
        self.kept = None

    def of_taps(self, x):
        """Return waves, transformed taps and sums of taps for images such as x."""
        weight = self.conv_transpose.weight
        key = (weight.data_ptr(), weight._version, x.shape)
        if self.kept is None or self.kept[0] != key:
            self.kept = (key, weight, *self.transform(x, weight.contiguous()))
        return self.kept[2:]

    def transform(self, x, weight):
        inputs, height, width = x.shape[1], *x.shape[3:]
        outputs, side = weight.shape[1:3]
        area = height * width
        high, wide = height + side - 1, width + side - 1
        half = wide // 2 + 1
        count = high * half  # frequencies
        waves = x.new_empty(2, count, area)
        make_waves[(count, triton.cdiv(area, 1024))](
            waves, count, H=height, W=width, FH=high, FW=wide, HALF=half, BLOCK=1024, num_warps=4
        )
        taps = x.new_empty(count, side, outputs, 2 * inputs)
        transform_taps[(triton.cdiv(count, 64), outputs * side)](
            weight, waves, taps, count, side, C=inputs, OUTPUTS=outputs, SIDE=side, W=width,
            AREA=area, BF=64, BK=triton.next_power_of_2(side * side), num_warps=4,
        )
        tap_sums = x.new_empty(inputs, outputs, side)
        sum_taps[(triton.cdiv(tap_sums.numel(), 256),)](
            weight, tap_sums, tap_sums.numel(), TAPS=side * side, BLOCK=256, num_warps=4
        )
        return waves, taps, tap_sums

    def forward(self, x):
        layer, norm = self.conv_transpose, self.batch_norm
        x = x.contiguous()
        waves, taps, tap_sums = self.of_taps(x)
        images, inputs, depth, height, width = x.shape
        outputs, side = layer.weight.shape[1:3]
        area = height * width
        high, wide = height + side - 1, width + side - 1
        half = wide // 2 + 1
        count = high * half  # frequencies

        planes = x.new_empty(count, depth, images, 2, 2 * inputs)
        transform_planes[(triton.cdiv(count, 64), images * (depth // 2))](
            x, waves, planes, images, depth, count,
            C=inputs, AREA=area, BF=64, BK=32, num_warps=8, num_stages=3,
        )
        shift = 2 * images
        tiles = triton.cdiv(shift * (depth + side - 1), 128)
        energy = x.new_empty(outputs, (count - 1) * tiles)
        sum_squares[(tiles, count - 1)](
            planes, taps, energy, shift * depth, shift, energy.shape[1],
            K=2 * inputs, OUTPUTS=outputs, SIDE=side, FW=wide, HALF=half,
            BM=128, BK=32, num_warps=8, num_stages=3,
        )

        plane_sums = x.new_empty(images, inputs, depth)
        sum_planes[(plane_sums.numel(),)](x, plane_sums, area, BLOCK=1024, num_warps=4)
        found = x.new_empty(images, 2, outputs)
        convolve_sums[(images, triton.cdiv(outputs, 16))](
            plane_sums, tap_sums, found, outputs, depth, C=inputs, OUTPUTS=16, SIDE=side,
            ROWS=triton.next_power_of_2(depth + side - 1), num_warps=4,
        )
        y = x.new_empty(images, outputs, 1, 1, 1)
        normalise_means[(outputs,)](
            found, energy, layer.bias, norm.weight, norm.bias,
            norm.running_mean, norm.running_var, norm.num_batches_tracked, y,
            images, outputs, high * wide, high * wide * (depth + side - 1), energy.shape[1],
            float(self.scale_factor), norm.eps, norm.momentum,
            IMAGES=triton.next_power_of_2(images),
            PARTS=triton.next_power_of_2(energy.shape[1]), num_warps=4,
        )
        return y
