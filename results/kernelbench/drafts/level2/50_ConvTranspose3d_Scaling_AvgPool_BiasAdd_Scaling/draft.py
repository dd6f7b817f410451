"""The mean of 2 x 2 x 2 results of the transposed convolution (3 taps, step 2, padding 1) is a convolution of the input
with 2 x 2 x 2 taps, scales and biases included, for the tensor cores. A program walks through the planes of a run of
positions and gathers each plane once, for the two planes of results that need it.

The program before masked what it gathered, and counted positions that have no result. Here positions are those of
results, so that what is written is contiguous; places beyond the end are moved inside (no result uses them); and one
position can stand for four results below each other, which share what is gathered: the taps are then laid out shifted,
with zeros, in as many rows, of which the tensor cores have plenty. Taps are folded in each call.
"""

import torch
import triton
import triton.language as tl

CONFIG = {"DOWN": 1, "BP": 256, "PLANES": 15, "SWAP": True, "INLINE": False, "STREAM": False, "warps": 4, "stages": 3, "registers": 0}


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def folded(weight, scale1, scale2, a, n, k, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr,
           DOWN: tl.constexpr):
    """[(result below, output), (input, row, column)]: the sum of the taps that meet the input there, scales included."""
    co = n % COLUMNS
    ci = k // (2 * (DOWN + 1))
    b = k // 2 % (DOWN + 1) - n // COLUMNS
    c = k % 2
    inside = (ci < INPUTS) & (co < OUTPUTS) & (b >= 0) & (b < 2)
    at = weight + (ci * OUTPUTS + co) * 27
    total = (n * k).to(tl.float32) * 0.0
    for choice in tl.static_range(8):
        i, j, l = choice // 4, choice // 2 % 2, choice % 2
        # Offset 0 takes taps 1 and 2, offset 1 takes tap 0 once.
        ka = tl.where(a == 0, 1 + i, 0)
        kb = tl.where(b == 0, 1 + j, 0)
        kc = tl.where(c == 0, 1 + l, 0)
        counts = ((a == 0) | (i == 0)) & ((b == 0) | (j == 0)) & ((c == 0) | (l == 0))
        total += tl.load(at + (ka * 9 + kb * 3 + kc), mask=inside & counts, other=0.0)
    return rounded(total * (tl.load(scale1) * tl.load(scale2) * 0.125))


@triton.jit
def shift_of(conv_bias, scale1, bias, scale2, n, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr):
    co = n % COLUMNS
    first = tl.load(conv_bias + co, mask=co < OUTPUTS, other=0.0)
    second = tl.load(bias + co, mask=co < OUTPUTS, other=0.0)
    return (first * tl.load(scale1) + second) * tl.load(scale2)


@triton.jit
def fold_taps(
    weight, conv_bias, scale1, bias, scale2, taps, shift,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, DOWN: tl.constexpr,
    ROWS: tl.constexpr,
):
    a = tl.program_id(1)
    n = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, K)
    value = folded(weight, scale1, scale2, a, n[:, None], k[None, :], INPUTS, OUTPUTS, COLUMNS, DOWN)
    tl.store(taps + ((a * (DOWN * COLUMNS) + n) * K)[:, None] + k[None, :], value)
    if a == 0:
        tl.store(shift + n, shift_of(conv_bias, scale1, bias, scale2, n, OUTPUTS, COLUMNS))


@triton.jit
def convolve(
    x, weight, conv_bias, scale1, bias, scale2, taps, shift, y,
    D: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, DOWN: tl.constexpr,
    BP: tl.constexpr, PLANES: tl.constexpr, TILES: tl.constexpr, SWAP: tl.constexpr, INLINE: tl.constexpr,
    STREAM: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) % TILES * BP + tl.arange(0, BP)
    first = tl.program_id(0) // TILES * PLANES
    n = tl.arange(0, DOWN * COLUMNS)
    k = tl.arange(0, K)
    if INLINE:
        near = folded(weight, scale1, scale2, k[None, :] * 0, n[:, None], k[None, :], INPUTS, OUTPUTS, COLUMNS, DOWN)
        far = folded(weight, scale1, scale2, k[None, :] * 0 + 1, n[:, None], k[None, :], INPUTS, OUTPUTS, COLUMNS, DOWN)
        start = shift_of(conv_bias, scale1, bias, scale2, n, OUTPUTS, COLUMNS)
    else:
        near = tl.load(taps + n[:, None] * K + k[None, :])
        far = tl.load(taps + (DOWN * COLUMNS + n)[:, None] * K + k[None, :])
        start = tl.load(shift + n)
    if SWAP:
        start = start[:, None] + tl.zeros((DOWN * COLUMNS, BP), tl.float32)
    else:
        near = tl.trans(near)
        far = tl.trans(far)
        start = start[None, :] + tl.zeros((BP, DOWN * COLUMNS), tl.float32)
    k = tl.where(k < 2 * (DOWN + 1) * INPUTS, k, 0)
    top = p // (W - 1) * DOWN
    column = p % (W - 1)
    row = tl.minimum(top[None, :] + (k // 2 % (DOWN + 1))[:, None], H - 1)
    places = (k // (2 * (DOWN + 1)) * (D * H * W) + k % 2)[:, None] + row * W + column[None, :]
    # Neighbours read neighbours but at the ends of rows: said, so that threads are laid along positions. (Nothing is read
    # or written more than one number at a time, since no alignment is known.)
    places = tl.max_contiguous(places, [1, 16])
    source = x + image * (INPUTS * D * H * W)
    AREA: tl.constexpr = (H - 1) * (W - 1)
    co = n % COLUMNS
    below = n // COLUMNS
    result = y + image * (OUTPUTS * (D - 1) * AREA)
    to = (co * ((D - 1) * AREA) + below * (W - 1))[:, None] + (top * (W - 1) + column)[None, :]
    to = tl.max_contiguous(to, [1, 16])
    kept = (co < OUTPUTS)[:, None] & (top[None, :] + below[:, None] < H - 1)
    older = start
    for i in range(PLANES + 1):
        v = rounded(tl.load(source + tl.minimum(first + i, D - 1) * (H * W) + places))
        # What is used at once comes last: the compiler would make the tensor cores wait after each instruction.
        if SWAP:
            newer = tl.dot(near, v, start, input_precision="tf32")
            done = tl.dot(far, v, older, input_precision="tf32")
        else:
            v = tl.trans(v)
            newer = tl.dot(v, near, start, input_precision="tf32")
            done = tl.dot(v, far, older, input_precision="tf32")
        older = newer
        found = done if SWAP else tl.trans(done)
        at = result + (first + i - 1) * AREA + to
        # Masked, not branched over: the compiler does not pipeline products whose sums are used in a branch.
        wanted = kept & (i >= 1) & (first + i < D)
        if STREAM:
            tl.store(at, found, mask=wanted, cache_modifier=".cs")
        else:
            tl.store(at, found, mask=wanted)


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, scale1, scale2, bias_shape
    ):
        super().__init__()
        assert (kernel_size, stride, padding) == (3, 2, 1)
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding
        )
        self.scale1 = torch.nn.Parameter(torch.tensor(scale1))
        self.avg_pool = torch.nn.AvgPool3d(kernel_size=2)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.scale2 = torch.nn.Parameter(torch.tensor(scale2))

    def forward(self, x):
        x = x.contiguous()
        weight = self.conv_transpose.weight.contiguous()
        parameters = (weight, self.conv_transpose.bias, self.scale1, self.bias.contiguous(), self.scale2)
        batch, inputs, depth, height, width = x.shape
        outputs = weight.shape[1]
        down, block, planes = CONFIG["DOWN"], CONFIG["BP"], CONFIG["PLANES"]
        sizes = dict(
            INPUTS=inputs, OUTPUTS=outputs, COLUMNS=max(16, triton.next_power_of_2(outputs)), DOWN=down,
            K=max(16, triton.next_power_of_2(2 * (down + 1) * inputs)),
        )
        rows = down * sizes["COLUMNS"]
        taps = x.new_empty(2, rows, sizes["K"])
        shift = x.new_empty(rows)
        if not CONFIG["INLINE"]:
            fold_taps[(rows // 16, 2)](*parameters, taps, shift, **sizes, ROWS=16, num_warps=4)
        y = x.new_empty(batch, outputs, depth - 1, height - 1, width - 1)
        tiles = triton.cdiv(triton.cdiv(height - 1, down) * (width - 1), block)
        convolve[(tiles * triton.cdiv(depth - 1, planes), batch)](
            x, *parameters, taps, shift, y, D=depth, H=height, W=width, **sizes, BP=block, PLANES=planes, TILES=tiles,
            SWAP=CONFIG["SWAP"], INLINE=CONFIG["INLINE"], STREAM=CONFIG["STREAM"],
            num_warps=CONFIG["warps"], num_stages=CONFIG["stages"],
            **({"maxnreg": CONFIG["registers"]} if CONFIG["registers"] else {}),
        )
        return y
