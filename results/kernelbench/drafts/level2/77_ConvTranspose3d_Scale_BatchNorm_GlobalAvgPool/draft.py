"""The volume that is normalised and averaged is never made: its mean and its energy are enough.

The mean of what is normalised is the normalised mean, and the mean of a full convolution is that of
the input times the sum of the taps. The variance needs the sum of squares. By Parseval's theorem it
can be taken from the Fourier transform along rows and columns, where the convolution with 25 taps
in each plane is one product: planes are transformed as matrix products, frequencies are convolved
along the planes alone, and the squares are summed on the tiles. Frequency zero, which holds the
mean, is made in full precision, so that nothing is lost when its square is subtracted.

The program before transformed planes by one dense product; here columns and then rows, a quarter of the work, and the
sums of planes are taken along. Waves of taps are read once for many taps. The convolution along the planes takes its
tiles by bulk copies, which make the zeros beyond the ends, and leaves out tiles that are nothing but those.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {"CB": 8, "BI": 16, "p_warps": 8, "BF": 128, "G": 1, "REPEAT": 16, "t_warps": 4, "BM": 128, "BK": 32, "warps": 8, "stages": 3, "BO": 1, "o_warps": 4}


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def make_waves(columns, rows, taps, count, FH: tl.constexpr, FW: tl.constexpr, HALF: tl.constexpr, SIDE: tl.constexpr,
               J: tl.constexpr, I: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Cosines and sines: columns[0 or 1, position, wave], rows alike, and taps[0 or 1, tap, frequency]. Of the
    frequencies of columns half are enough."""
    position = tl.program_id(0)
    turn = 6.283185307179586
    j = tl.arange(0, J)
    angle = (position * j % FW).to(tl.float32) * (turn / FW)
    tl.store(columns + position * J + j, rounded(tl.cos(angle)))
    tl.store(columns + (tl.num_programs(0) + position) * J + j, rounded(tl.sin(angle)))
    i = tl.arange(0, I)
    angle = (position * i % FH).to(tl.float32) * (turn / FH)
    tl.store(rows + position * I + i, rounded(tl.cos(angle)))
    tl.store(rows + (tl.num_programs(0) + position) * I + i, rounded(tl.sin(angle)))
    for first in range(0, STRIDE, BLOCK):
        f = first + tl.arange(0, BLOCK)
        turns = (f // HALF * (position // SIDE) % FH).to(tl.float32) / FH
        turns += (f % HALF * (position % SIDE) % FW).to(tl.float32) / FW
        there = position < SIDE * SIDE
        tl.store(taps + position * STRIDE + f, tl.where(there, rounded(tl.cos(turn * turns)), 0.0), mask=f < STRIDE)
        to = taps + (tl.num_programs(0) + position) * STRIDE + f
        tl.store(to, tl.where(there, rounded(tl.sin(turn * turns)), 0.0), mask=f < STRIDE)


@triton.jit
def transform_planes(
    x, columns, rows, out, sums, images,
    C: tl.constexpr, D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr,
    FH: tl.constexpr, HALF: tl.constexpr, J: tl.constexpr, I: tl.constexpr, CB: tl.constexpr, BI: tl.constexpr,
    POSITIONS: tl.constexpr,
):
    """One plane of some channels. Each result is stored as two rows, (re, -im) and (im, re), whose
    products with (re, im) of the taps are the real and the imaginary part."""
    image = tl.program_id(1) // D
    plane = tl.program_id(1) % D
    start = tl.program_id(0) * CB
    r = tl.arange(0, CB * PH)
    w = tl.arange(0, PW)
    channel = start + r // PH
    inside = ((r % PH < H) & (channel < C))[:, None] & (w < W)[None, :]
    at = x + (image * C + channel).to(tl.int64)[:, None] * (D * H * W) + ((plane * H + r % PH) * W)[:, None] + w[None, :]
    v = tl.load(at, mask=inside, other=0.0)
    each = start + tl.arange(0, CB)
    total = tl.sum(tl.reshape(tl.sum(v, 1), (CB, PH)), 1)
    tl.store(sums + (image * C + each) * D + plane, total, mask=each < C)
    v = rounded(v)
    j = tl.arange(0, J)
    table = columns + w[:, None] * J + j[None, :]
    cosines = tl.dot(v, tl.load(table), input_precision="tf32")
    sines = tl.dot(v, tl.load(table + POSITIONS * J), input_precision="tf32")
    # Rows come to lie along the sum, and channels, side by side in the result, next to each other.
    cosines = tl.reshape(tl.permute(tl.reshape(rounded(cosines), (CB, PH, J)), (2, 0, 1)), (J * CB, PH))
    sines = tl.reshape(tl.permute(tl.reshape(rounded(sines), (CB, PH, J)), (2, 0, 1)), (J * CB, PH))
    m = tl.arange(0, J * CB)
    mine = start + m % CB
    h = tl.arange(0, PH)
    for block in tl.static_range((FH + BI - 1) // BI):
        i = block * BI + tl.arange(0, BI)
        table = rows + h[:, None] * I + i[None, :]
        c = tl.load(table)
        s = tl.load(table + POSITIONS * I)
        imaginary = tl.dot(cosines, s, input_precision="tf32")
        real = tl.dot(cosines, c, input_precision="tf32")
        imaginary = tl.dot(sines, c, imaginary, input_precision="tf32")
        real = rounded(tl.dot(sines, -s, real, input_precision="tf32"))
        imaginary = rounded(imaginary)
        f = i[None, :] * HALF + (m // CB)[:, None]
        known = (i < FH)[None, :] & ((m // CB < HALF) & (mine < C))[:, None]
        to = out + ((f * D + plane) * images + image) * (4 * C) + mine[:, None]
        tl.store(to, real, mask=known)
        tl.store(to + C, -imaginary, mask=known)
        tl.store(to + 2 * C, imaginary, mask=known)
        tl.store(to + 3 * C, real, mask=known)


@triton.jit
def transform_taps(
    weight, waves, out, sums, count, planes, outputs,
    C: tl.constexpr, TAPS: tl.constexpr, BF: tl.constexpr, BK: tl.constexpr, G: tl.constexpr, REPEAT: tl.constexpr,
    STRIDE: tl.constexpr, POSITIONS: tl.constexpr,
):
    """All inputs of some outputs and planes of taps; stored as rows of (re, im). Their sums are made by the way."""
    m = tl.arange(0, G * C)
    ci = m % C
    t = tl.arange(0, BK)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    table = waves + t[:, None] * STRIDE + f[None, :]
    cosine = tl.load(table)
    sine = tl.load(table + POSITIONS * STRIDE)
    for step in range(REPEAT):
        both = (tl.program_id(0) * REPEAT + step) * G + m // C
        there = both < outputs * planes
        at = weight + ((ci * outputs * planes + both) * TAPS)[:, None] + t[None, :]
        v = tl.load(at, mask=there[:, None] & (t < TAPS)[None, :], other=0.0)
        if tl.program_id(1) == 0:
            tl.store(sums + ci * outputs * planes + both, tl.sum(v, 1), mask=there)
        v = rounded(v)
        real = rounded(tl.dot(v, cosine, input_precision="tf32"))
        imaginary = rounded(tl.dot(v, sine, input_precision="tf32"))
        row = (f[None, :] * planes + (both % planes)[:, None]) * outputs + (both // planes)[:, None]
        to = out + row * (2 * C) + ci[:, None]
        known = (f < count)[None, :] & there[:, None]
        tl.store(to, real, mask=known)
        tl.store(to + C, imaginary, mask=known)


@triton.jit
def sum_squares(
    planes, taps, energy, total, ROWS: tl.constexpr, SHIFT: tl.constexpr,
    K: tl.constexpr, OUTPUTS: tl.constexpr, SIDE: tl.constexpr, FW: tl.constexpr,
    HALF: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
):
    """The convolution along the planes at one frequency; rows of one plane lie SHIFT apart."""
    f = tl.program_id(1) + 1
    first = tl.program_id(0) * BM
    co = tl.arange(0, OUTPUTS)
    result = tl.zeros((BM, OUTPUTS), tl.float32)
    CHUNKS: tl.constexpr = K // BK
    low = tl.maximum(first - ROWS + SHIFT, 0) // SHIFT
    high = tl.minimum((first + BM + SHIFT - 1) // SHIFT, SIDE)
    for step in range(low * CHUNKS, high * CHUNKS):
        tap = step // CHUNKS
        k = step % CHUNKS * BK
        v = planes.load([f, first - tap * SHIFT, k]).reshape(BM, BK)
        t = taps.load([(f * SIDE + tap) * OUTPUTS, k])
        result = tl.dot(v, t.T, result, input_precision="tf32")
    # All columns but the first, and the middle one if there is one, stand for their mirror images.
    column = f % HALF
    times = tl.where((column == 0) | (2 * column == FW), 1.0, 2.0)
    part = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    tl.store(energy + co * total + part, tl.sum(result * result, 0) * times)


@triton.jit
def convolve_sums(
    sums, taps, found, channels, depth,
    C: tl.constexpr, PC: tl.constexpr, OUTPUTS: tl.constexpr, SIDE: tl.constexpr, ROWS: tl.constexpr,
):
    """Frequency zero of one image, in full precision: its sum, and the sum of its squares."""
    image = tl.program_id(0)
    o = tl.arange(0, ROWS)[None, :]
    ci = tl.arange(0, PC)
    for each in range(OUTPUTS):
        co = tl.program_id(1) * OUTPUTS + each
        total = tl.zeros((PC, ROWS), tl.float32)
        for tap in tl.static_range(SIDE):
            d = o - tap
            known = (ci < C)[:, None] & (d >= 0) & (d < depth)
            v = tl.load(sums + (image * C + ci[:, None]) * depth + d, mask=known, other=0.0)
            t = tl.load(taps + (ci * channels + co) * SIDE + tap, mask=(ci < C) & (co < channels), other=0.0)
            total += v * t[:, None]
        result = tl.sum(total, 0)
        if co < channels:
            tl.store(found + (image * 2) * channels + co, tl.sum(result, 0))
            tl.store(found + (image * 2 + 1) * channels + co, tl.sum(result * result, 0))


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

    def forward(self, x):
        layer, norm = self.conv_transpose, self.batch_norm
        x, weight = x.contiguous(), layer.weight.contiguous()
        images, inputs, depth, height, width = x.shape
        outputs, side = weight.shape[1], weight.shape[2]
        high, wide = height + side - 1, width + side - 1
        half = wide // 2 + 1
        count = high * half  # frequencies
        power = triton.next_power_of_2

        ph, pw, j, i = max(16, power(height)), max(16, power(width)), max(16, power(half)), max(64, power(high))
        positions = max(ph, pw, power(side * side))
        stride = triton.cdiv(count, 256) * 256
        columns = x.new_empty(2, positions, j)
        rows = x.new_empty(2, positions, i)
        waves = x.new_empty(2, positions, stride)
        make_waves[(positions,)](
            columns, rows, waves, count, FH=high, FW=wide, HALF=half, SIDE=side, J=j, I=i, STRIDE=stride, BLOCK=256,
            num_warps=4,
        )
        planes = x.new_empty(count, depth * images * 2, 2 * inputs)
        plane_sums = x.new_empty(images, inputs, depth)
        transform_planes[(triton.cdiv(inputs, CONFIG["CB"]), images * depth)](
            x, columns, rows, planes, plane_sums, images,
            C=inputs, D=depth, H=height, W=width, PH=ph, PW=pw, FH=high, HALF=half, J=j, I=i,
            CB=CONFIG["CB"], BI=CONFIG["BI"], POSITIONS=positions, num_warps=CONFIG["p_warps"],
        )
        taps = x.new_empty(count * side * outputs, 2 * inputs)
        tap_sums = x.new_empty(inputs, outputs, side)
        transform_taps[(triton.cdiv(outputs * side, CONFIG["G"] * CONFIG["REPEAT"]), triton.cdiv(count, CONFIG["BF"]))](
            weight, waves, taps, tap_sums, count, side, outputs, C=inputs, TAPS=side * side, BF=CONFIG["BF"],
            BK=max(16, power(side * side)), G=CONFIG["G"], REPEAT=CONFIG["REPEAT"], STRIDE=stride, POSITIONS=positions,
            num_warps=CONFIG["t_warps"],
        )
        shift = 2 * images
        block, deep = CONFIG["BM"], CONFIG["BK"]
        tiles = triton.cdiv(shift * (depth + side - 1), block)
        energy = x.new_empty(outputs, (count - 1) * tiles)
        sum_squares[(tiles, count - 1)](
            TensorDescriptor.from_tensor(planes, [1, block, deep]), TensorDescriptor.from_tensor(taps, [outputs, deep]),
            energy, energy.shape[1], ROWS=shift * depth, SHIFT=shift,
            K=2 * inputs, OUTPUTS=outputs, SIDE=side, FW=wide, HALF=half,
            BM=block, BK=deep, num_warps=CONFIG["warps"], num_stages=CONFIG["stages"],
        )

        found = x.new_empty(images, 2, outputs)
        convolve_sums[(images, triton.cdiv(outputs, CONFIG["BO"]))](
            plane_sums, tap_sums, found, outputs, depth, C=inputs, PC=power(inputs), OUTPUTS=CONFIG["BO"], SIDE=side,
            ROWS=power(depth + side - 1), num_warps=CONFIG["o_warps"],
        )
        y = x.new_empty(images, outputs, 1, 1, 1)
        normalise_means[(outputs,)](
            found, energy, layer.bias, norm.weight, norm.bias,
            norm.running_mean, norm.running_var, norm.num_batches_tracked, y,
            images, outputs, high * wide, high * wide * (depth + side - 1), energy.shape[1],
            float(self.scale_factor), norm.eps, norm.momentum,
            IMAGES=power(images), PARTS=power(energy.shape[1]), num_warps=4,
        )
        return y
