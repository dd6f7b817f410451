"""A transposed convolution along a line, straight from the images: nothing is copied or put in another order first.

Positions are the left operand of the products, which tensor cores take from registers, so that they may lie in any order
in memory. Taps follow each other within a chunk of channels: what they read overlaps, and comes from the first cache.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def arrange(weight, arranged, C: tl.constexpr, OUT: tl.constexpr, TAPS: tl.constexpr, BLOCK_IN: tl.constexpr):
    """[input, output, tap] to [chunk of inputs, tap, output, input]."""
    step = tl.program_id(0)
    channel = step // TAPS * BLOCK_IN + tl.arange(0, BLOCK_IN)[None, :]
    out = tl.arange(0, OUT)[:, None]
    value = tl.load(weight + (channel * OUT + out) * TAPS + step % TAPS)
    target = arranged + (step * OUT + out) * BLOCK_IN + tl.arange(0, BLOCK_IN)[None, :]
    tl.store(target, rounded(value))


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
        for block, warps, stages in ((128, 8, 3), (128, 8, 4), (128, 8, 2), (64, 4, 4), (64, 4, 3))
    ],
    key=[],
)
@triton.jit
def convolve(x, arranged, y, C: tl.constexpr, OUT: tl.constexpr, LENGTH: tl.constexpr, RESULT: tl.constexpr,
             TAPS: tl.constexpr, DILATION: tl.constexpr, BLOCK_IN: tl.constexpr, BLOCK: tl.constexpr):
    """Result w is the sum over t of tap t of x[w - t * DILATION]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image = tl.program_id(1).to(tl.int64)
    k = tl.arange(0, BLOCK_IN)
    out = tl.arange(0, OUT)
    source = x + image * (C * LENGTH) + (k[:, None] * LENGTH + at[None, :])
    taps = arranged + out[:, None] * BLOCK_IN + k[None, :]
    sums = tl.zeros((BLOCK, OUT), tl.float32)
    for step in range(TAPS * (C // BLOCK_IN)):
        back = step % TAPS * DILATION
        there = (at >= back) & (at - back < LENGTH)
        far = step // TAPS * (BLOCK_IN * LENGTH) - back
        piece = rounded(tl.trans(tl.load(source + far, mask=there[None, :], other=0.0)))
        sums = tl.dot(piece, tl.trans(tl.load(taps + step * (OUT * BLOCK_IN))), sums, input_precision="tf32")
    place = y + image * (OUT * RESULT) + (out[:, None] * RESULT + at[None, :])
    tl.store(place, tl.trans(sums), mask=(at < RESULT)[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=False):
        super().__init__()
        assert (stride, padding, output_padding, groups, bias) == (1, 0, 0, 1, False)
        self.conv1d_transpose = torch.nn.ConvTranspose1d(
            in_channels, out_channels, kernel_size, bias=False
        )

    def forward(self, x):
        x = x.contiguous()
        layer = self.conv1d_transpose
        weight = layer.weight.contiguous()
        images, c, length = x.shape
        _, out, taps = weight.shape
        dilation = layer.dilation[0]
        result = length + (taps - 1) * dilation
        block_in = 32
        arranged = x.new_empty(weight.numel())
        arrange[(taps * (c // block_in),)](
            weight, arranged, C=c, OUT=out, TAPS=taps, BLOCK_IN=block_in, num_warps=4
        )
        y = x.new_empty(images, out, result)

        def grid(meta):
            return (triton.cdiv(result, meta["BLOCK"]), images)

        convolve[grid](
            x, arranged, y, C=c, OUT=out, LENGTH=length, RESULT=result, TAPS=taps, DILATION=dilation,
            BLOCK_IN=block_in,
        )
        return y
