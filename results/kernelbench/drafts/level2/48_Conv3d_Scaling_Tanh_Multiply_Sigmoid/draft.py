"""The convolution as products with planes of taps, gathered from the volume; all that follows in registers.

The program before spent its time on gathering 27 numbers per position and plane, one instruction or more each. Here a row
of the product stands for several results below each other: their windows overlap, so that half as many numbers are
gathered per result, and the taps are laid out shifted, with zeros, in as many columns. That costs tensor cores more
products, in wider and thus better filled instructions. Places beyond the end are moved inside instead of masked: what
is read there is used for no result. A program walks through the planes, and each plane is gathered once for the three
planes of results that need it.
"""

import torch
import triton
import triton.language as tl

CONFIG = {"DOWN": 4, "BP": 64, "PLANES": 14, "SWAP": False, "warps": 4, "stages": 3, "registers": 0}


@triton.jit
def tanh(v):
    """The hyperbolic tangent in one instruction, whose relative error is that of TF32."""
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def shifted_taps(weight, plane: tl.constexpr, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr,
                 DOWN: tl.constexpr, K: tl.constexpr, SWAP: tl.constexpr):
    """[(input, row, column), (result below, output)] of one plane of taps: zeros where a row is not in a window."""
    n = tl.arange(0, DOWN * COLUMNS)[:, None]
    k = tl.arange(0, K)[None, :]
    co = n % COLUMNS
    ci = k // (3 * (DOWN + 2))
    tap = k // 3 % (DOWN + 2) - n // COLUMNS
    there = (co < OUTPUTS) & (ci < INPUTS) & (tap >= 0) & (tap < 3)
    at = weight + (co * INPUTS + ci) * 27 + plane * 9 + tap * 3 + k % 3
    taps = rounded(tl.load(at, mask=there, other=0.0))
    return taps if SWAP else tl.trans(taps)


@triton.jit
def convolve_gate(
    x, weight, bias, factor, gate, y, D: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr, DOWN: tl.constexpr,
    BP: tl.constexpr, PLANES: tl.constexpr, TILES: tl.constexpr, SWAP: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) % TILES * BP + tl.arange(0, BP)
    first = tl.program_id(0) // TILES * PLANES
    front = shifted_taps(weight, 0, INPUTS, OUTPUTS, COLUMNS, DOWN, K, SWAP)
    middle = shifted_taps(weight, 1, INPUTS, OUTPUTS, COLUMNS, DOWN, K, SWAP)
    back = shifted_taps(weight, 2, INPUTS, OUTPUTS, COLUMNS, DOWN, K, SWAP)
    k = tl.arange(0, K)
    k = tl.where(k < 3 * (DOWN + 2) * INPUTS, k, 0)
    top = p // (W - 2) * DOWN
    column = p % (W - 2)
    row = tl.minimum(top[None, :] + (k // 3 % (DOWN + 2))[:, None], H - 1)
    places = (k // (3 * (DOWN + 2)) * (D * H * W) + k % 3)[:, None] + row * W + column[None, :]
    source = x + image * (INPUTS * D * H * W)
    n = tl.arange(0, DOWN * COLUMNS)
    co = n % COLUMNS
    below = n // COLUMNS
    f = tl.load(factor + co, mask=co < OUTPUTS, other=0.0)
    shift = tl.load(bias + co, mask=co < OUTPUTS, other=0.0) * f
    half = 0.5 * tl.load(gate + co, mask=co < OUTPUTS, other=0.0)
    AREA: tl.constexpr = (H - 2) * (W - 2)
    result = y + image * (OUTPUTS * (D - 2) * AREA)
    to = (co * ((D - 2) * AREA) + below * (W - 2))[:, None] + (top * (W - 2) + column)[None, :]
    kept = (co < OUTPUTS)[:, None] & (top[None, :] + below[:, None] < H - 2)
    if SWAP:
        f = f[:, None]
        shift = shift[:, None]
        half = half[:, None]
        older = tl.zeros((DOWN * COLUMNS, BP), tl.float32)
        newer = tl.zeros((DOWN * COLUMNS, BP), tl.float32)
    else:
        f = f[None, :]
        shift = shift[None, :]
        half = half[None, :]
        older = tl.zeros((BP, DOWN * COLUMNS), tl.float32)
        newer = tl.zeros((BP, DOWN * COLUMNS), tl.float32)
    for i in range(PLANES + 2):
        v = rounded(tl.load(source + tl.minimum(first + i, D - 1) * (H * W) + places))
        # What is used at once comes last: the compiler would make the tensor cores wait after each instruction.
        if SWAP:
            between = tl.dot(middle, v, newer, input_precision="tf32")
            newer = tl.dot(front, v, input_precision="tf32")
            done = tl.dot(back, v, older, input_precision="tf32")
        else:
            v = tl.trans(v)
            between = tl.dot(v, middle, newer, input_precision="tf32")
            newer = tl.dot(v, front, input_precision="tf32")
            done = tl.dot(v, back, older, input_precision="tf32")
        older = between
        gated = 0.5 + 0.5 * tanh(tanh(done * f + shift) * half)
        if not SWAP:
            gated = tl.trans(gated)
        # Masked, not branched over: the compiler does not pipeline products whose sums are used in a branch.
        tl.store(result + (first + i - 2) * AREA + to, gated, mask=kept & (i >= 2) & (first + i < D))


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scaling_factor, bias_shape):
        super().__init__()
        assert kernel_size == 3
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.scaling_factor = torch.nn.Parameter(torch.randn(bias_shape))
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = x.contiguous()
        weight = self.conv.weight.contiguous()
        batch, inputs, depth, height, width = x.shape
        outputs = weight.shape[0]
        y = x.new_empty(batch, outputs, depth - 2, height - 2, width - 2)
        down, block, planes = CONFIG["DOWN"], CONFIG["BP"], CONFIG["PLANES"]
        tiles = triton.cdiv(triton.cdiv(height - 2, down) * (width - 2), block)
        convolve_gate[(tiles * triton.cdiv(depth - 2, planes), batch)](
            x, weight, self.conv.bias, self.scaling_factor, self.bias, y, D=depth, H=height, W=width,
            INPUTS=inputs, OUTPUTS=outputs, COLUMNS=max(16, triton.next_power_of_2(outputs)),
            K=max(16, triton.next_power_of_2(3 * (down + 2) * inputs)), DOWN=down, BP=block, PLANES=planes, TILES=tiles,
            SWAP=CONFIG["SWAP"], num_warps=CONFIG["warps"], num_stages=CONFIG["stages"],
            **({"maxnreg": CONFIG["registers"]} if CONFIG["registers"] else {}),
        )
        return y
