"""The transposed convolution as gathered products, with less to read per product than before.

What bounded it was the way from the second-level cache: both factors came anew for each product. Now the tile in the
middle is read once for the even and the odd columns (MERGE: three tiles for four products), and a tile may be twice as
large, in smaller steps along the channels (ROWS, BK). What is finished leaves through the tensor memory accelerator
(STORE), while the next tile is made, if programs stay (STAY: so many per multiprocessor), and
in pieces (PIECES), which take fewer registers.

Channels last, with zeros after each image's rows and planes: tiles are whole rows, shifted as the taps want them, and
the accelerator fills in zeros beside them. A tile holds whole rows of the result, even and odd columns, so norm, GELU
and scale are made in registers. The norm runs along the rows, where the bias of a channel is one number: it is gone with
the mean, and never added. Both factors are rounded to TF32 when they are put in order.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {'ROWS': 4, 'BK': 32, 'WARPS': 4, 'STAGES': 2, 'MERGE': True, 'STORE': True, 'PIECES': 4, 'STAY': 2, 'FLATTEN': False, 'REGISTERS': 0, 'FIRST_ROWS': 4, 'FIRST_WARPS': 8}


@triton.jit
def rounded(value):
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def arrange(weight, taps, C: tl.constexpr, OUTPUTS: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    """[input, output, tap] to [tap, output, input]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < C * OUTPUTS * TAPS
    source = weight + (at % C * OUTPUTS + at // C % OUTPUTS) * TAPS + at // (C * OUTPUTS)
    tl.store(taps + at, rounded(tl.load(source, mask=inside, other=0.0)), mask=inside)


@triton.jit
def padded_channels_last(x, y, depth, height, W: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr):
    """Channels side by side, and a row of zeros after each plane, and a plane after each image."""
    image = tl.program_id(1).to(tl.int64)
    p = tl.program_id(0) * ROWS * W + tl.arange(0, ROWS * W)
    c = tl.arange(0, C)
    row = p // W % (height + 1)
    plane = p // W // (height + 1)
    seen = (row < height) & (plane < depth)
    volume = depth * height * W
    at = (plane * height + row) * W + p % W
    v = tl.load(
        x + image * C * volume + c[:, None] * volume + at[None, :], mask=seen[None, :], other=0.0
    )
    padded = (depth + 1) * (height + 1) * W
    to = y + image * C * padded + p[:, None] * C + c[None, :]
    tl.store(to, tl.trans(rounded(v)), mask=(p < padded)[:, None])


@triton.jit
def power_of_two(v):
    """In one instruction; what is too small for a normal number is zero."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def gelu(v):
    """x times the normal distribution function, whose tail is two to the power of a polynomial: right to 5e-7."""
    z = tl.abs(v)
    p = -1.0000376 + z * (-1.1507878 + z * (-0.45999265 + z * (-0.051827167 + z * (0.0070844606 - z * 0.00047329394))))
    return tl.maximum(v, 0.0) - z * power_of_two(p)


@triton.jit
def halves(v, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, W: tl.constexpr):
    """Even and odd rows of a tile."""
    return tl.split(tl.permute(tl.reshape(v, (OUTPUTS, ROWS // 2, 2, W)), (0, 1, 3, 2)))


@triton.jit
def finish(
    even, odd, piece, gamma, beta, y, results, image, plane, row, depth, height, eps, factor,
    W: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, PIECES: tl.constexpr, STORE: tl.constexpr,
):
    """Norm, GELU and scale of every so many rows: plane and row are those of the result, and before doubling."""
    even = tl.reshape(even, (OUTPUTS, ROWS, W))
    odd = tl.reshape(odd, (OUTPUTS, ROWS, W))
    mean = tl.sum(even + odd, 2) / (2 * W)
    even -= mean[:, :, None]
    odd -= mean[:, :, None]
    inverse = 1.0 / tl.sqrt(tl.sum(even * even + odd * odd, 2) / (2 * W) + eps)
    two = 2 * tl.arange(0, W)
    g = tl.load(gamma + two)[None, None, :]
    b = tl.load(beta + two)[None, None, :]
    even = gelu(even * inverse[:, :, None] * g + b) * factor
    g = tl.load(gamma + 1 + two)[None, None, :]
    b = tl.load(beta + 1 + two)[None, None, :]
    odd = gelu(odd * inverse[:, :, None] * g + b) * factor
    v = tl.join(even, odd)
    odd_row = row % 2
    if STORE:
        at = (plane * height + row // 2) // PIECES
        results.store([image * OUTPUTS, at, piece, odd_row, 0], tl.reshape(v, (OUTPUTS, ROWS, 1, 1, 2 * W)))
    else:
        co = tl.arange(0, OUTPUTS)
        q = row + 2 * (piece + tl.arange(0, ROWS * 2 * W) // (2 * W) * PIECES)
        to = (plane * 2 * height + q) * 2 * W + tl.arange(0, ROWS * 2 * W) % (2 * W)
        volume = 8 * depth * height * W
        at = y + image.to(tl.int64) * OUTPUTS * volume + co[:, None] * volume + to[None, :]
        tl.store(at, tl.reshape(v, (OUTPUTS, ROWS * 2 * W)))


@triton.jit
def make_tile(
    number, x, taps, gamma, beta, y, results, depth, height, eps, factor,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr,
    MERGE: tl.constexpr, STORE: tl.constexpr, PIECES: tl.constexpr,
):
    """Along each axis result 2j is tap 1 of x[j] plus tap 3 of x[j - 1], and result 2j + 1 is
    tap 0 of x[j + 1] plus tap 2 of x[j]."""
    odd_row = number % 2
    odd_plane = number // 2 % 2
    # ROWS divides the height, so that a tile lies in one plane.
    line = number // 4 * ROWS
    row = line % height
    plane = line // height % depth
    image = line // height // depth
    BP: tl.constexpr = ROWS * W
    CHUNKS: tl.constexpr = C // BK
    even = tl.zeros((OUTPUTS, BP), tl.float32)
    odd = tl.zeros((OUTPUTS, BP), tl.float32)
    start = (image * (depth + 1) + plane) * (height + 1) + row
    if MERGE:
        # Two rounds: the compiler lets two groups of warps share a tile only if each sum grows once in a turn.
        for step in range(4 * CHUNKS):
            # Per axis and turn: parity 0 takes (tap 1, j), (tap 3, j - 1); parity 1 (0, j + 1), (2, j).
            a, b, k = step // CHUNKS // 2, step // CHUNKS % 2, step % CHUNKS * BK
            at = start + (odd_plane - a) * (height + 1) + odd_row - b
            tap = ((1 - odd_plane + 2 * a) * 4 + 1 - odd_row + 2 * b) * 4
            here = tl.reshape(x.load([at, 0, k]), (BP, BK))
            even = tl.dot(taps.load([(tap + 1) * OUTPUTS, k]), here.T, even, input_precision="tf32")
            odd = tl.dot(taps.load([(tap + 2) * OUTPUTS, k]), here.T, odd, input_precision="tf32")
        for step in range(4 * CHUNKS):
            a, b, k = step // CHUNKS // 2, step // CHUNKS % 2, step % CHUNKS * BK
            at = start + (odd_plane - a) * (height + 1) + odd_row - b
            tap = ((1 - odd_plane + 2 * a) * 4 + 1 - odd_row + 2 * b) * 4
            left = tl.reshape(x.load([at, -1, k]), (BP, BK))
            even = tl.dot(taps.load([(tap + 3) * OUTPUTS, k]), left.T, even, input_precision="tf32")
            right = tl.reshape(x.load([at, 1, k]), (BP, BK))
            odd = tl.dot(taps.load([tap * OUTPUTS, k]), right.T, odd, input_precision="tf32")
    else:
        for step in range(8 * CHUNKS):
            turn, k = step // CHUNKS, step % CHUNKS * BK
            a, b, c = turn // 4, turn // 2 % 2, turn % 2
            at = start + (odd_plane - a) * (height + 1) + odd_row - b
            tap = ((1 - odd_plane + 2 * a) * 4 + 1 - odd_row + 2 * b) * 4 + 2 * c
            right = tl.reshape(x.load([at, 1 - c, k]), (BP, BK))
            odd = tl.dot(taps.load([tap * OUTPUTS, k]), right.T, odd, input_precision="tf32")
            left = tl.reshape(x.load([at, -c, k]), (BP, BK))
            even = tl.dot(taps.load([(tap + 1) * OUTPUTS, k]), left.T, even, input_precision="tf32")
    plane = 2 * plane + odd_plane
    row = 2 * row + odd_row
    if PIECES == 1:
        finish(
            even, odd, 0, gamma, beta, y, results, image, plane, row, depth, height, eps, factor,
            W, OUTPUTS, ROWS, 1, STORE,
        )
    else:
        # Fewer registers are in use at once, and less shared memory.
        even_rows = halves(even, OUTPUTS, ROWS, W)
        odd_rows = halves(odd, OUTPUTS, ROWS, W)
        for piece in tl.static_range(2):
            if PIECES == 2:
                finish(
                    even_rows[piece], odd_rows[piece], piece, gamma, beta, y, results, image, plane, row,
                    depth, height, eps, factor, W, OUTPUTS, ROWS // 2, 2, STORE,
                )
            else:
                even_quarter = halves(even_rows[piece], OUTPUTS, ROWS // 2, W)
                odd_quarter = halves(odd_rows[piece], OUTPUTS, ROWS // 2, W)
                for part in tl.static_range(2):
                    finish(
                        even_quarter[part], odd_quarter[part], 2 * part + piece, gamma, beta, y, results, image,
                        plane, row, depth, height, eps, factor, W, OUTPUTS, ROWS // 4, 4, STORE,
                    )


@triton.jit
def transposed_norm_gelu(
    x, taps, gamma, beta, y, results, total, depth, height, eps, factor,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr,
    MERGE: tl.constexpr, STORE: tl.constexpr, PIECES: tl.constexpr, STAY: tl.constexpr, FLATTEN: tl.constexpr,
):
    if STAY:
        for number in tl.range(tl.program_id(0), total, tl.num_programs(0), flatten=FLATTEN):
            make_tile(
                number, x, taps, gamma, beta, y, results, depth, height, eps, factor,
                W, C, OUTPUTS, ROWS, BK, MERGE, STORE, PIECES,
            )
    else:
        make_tile(
            tl.program_id(0), x, taps, gamma, beta, y, results, depth, height, eps, factor,
            W, C, OUTPUTS, ROWS, BK, MERGE, STORE, PIECES,
        )


def multiprocessors(x):
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 132


class ModelNew(torch.nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding,
        bias=True, eps=1e-5, scaling_factor=1.0,
    ):
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=bias
        )
        self.layer_norm = torch.nn.LayerNorm(out_channels, eps=eps)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        layer, norm = self.conv_transpose, self.layer_norm
        batch, inputs, depth, height, width = x.shape
        outputs = layer.weight.shape[1]
        lines = (depth + 1) * (height + 1)
        last = x.new_empty(batch * lines, width, inputs)
        some = CONFIG["FIRST_ROWS"]
        padded_channels_last[(triton.cdiv(lines, some), batch)](
            x.contiguous(), last, depth, height, W=width, C=inputs, ROWS=some, num_warps=CONFIG["FIRST_WARPS"]
        )
        weight = layer.weight.contiguous()
        taps = x.new_empty(weight.numel() // inputs, inputs)
        arrange[(triton.cdiv(weight.numel(), 1024),)](
            weight, taps, C=inputs, OUTPUTS=outputs, TAPS=weight[0, 0].numel(), BLOCK=1024, num_warps=4
        )
        y = x.new_empty(batch, outputs, 2 * depth, 2 * height, 2 * width)
        rows, bk = CONFIG["ROWS"], min(CONFIG["BK"], inputs)
        while height % rows:
            rows //= 2
        total = 4 * batch * depth * (height // rows)
        stay = CONFIG["STAY"]
        pieces = min(CONFIG["PIECES"], rows)
        results = y.view(batch * outputs, 2 * depth * height // pieces, pieces, 2, 2 * width)
        options = {"maxnreg": CONFIG["REGISTERS"]} if CONFIG["REGISTERS"] else {}
        transposed_norm_gelu[(min(total, stay * multiprocessors(x)) if stay else total,)](
            TensorDescriptor.from_tensor(last, [rows, width, bk]),
            TensorDescriptor.from_tensor(taps, [outputs, bk]),
            norm.weight, norm.bias, y,
            TensorDescriptor.from_tensor(results, [outputs, rows // pieces, 1, 1, 2 * width]),
            total, depth, height, norm.eps, self.scaling_factor,
            W=width, C=inputs, OUTPUTS=outputs, ROWS=rows, BK=bk,
            MERGE=CONFIG["MERGE"], STORE=CONFIG["STORE"], PIECES=pieces, STAY=bool(stay), FLATTEN=CONFIG["FLATTEN"],
            num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"], **options,
        )
        return y
