"""A transposed convolution along a line in one pass: what was a copy of all images is now one of a tile, which stays in the cache.

Tensor cores want channels side by side. Before, a kernel of its own wrote the images in that order and the products read
them again, twice the bytes that have to move. Now each program brings its tile (with the few columns before it that the
taps reach) in order in a piece of memory of its own, used again for each tile, so that the second level cache
keeps it, and multiplies from there. Several programs share a multiprocessor: some copy or store while others multiply.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {'BLOCK': 128, 'BLOCK_IN': 32, 'WARPS': 4, 'STAGES': 3, 'PER_SM': 2, 'STAGE_BLOCK': 128, 'ACCELERATOR': True, 'POSITIONS_LEFT': False}


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


@triton.jit
def copy_piece(source, target, first, at, C: tl.constexpr, LENGTH: tl.constexpr, LINES: tl.constexpr,
               BLOCK_IN: tl.constexpr, BLOCK: tl.constexpr):
    """Columns first + at, ... of all channels to lines at, ... of the copy, zeros beyond the ends."""
    p = at + tl.arange(0, BLOCK)
    there = (first + p >= 0) & (first + p < LENGTH)
    k = tl.arange(0, C)
    value = tl.load(source + (k[:, None] * LENGTH + (first + p)[None, :]), mask=there[None, :], other=0.0,
                    eviction_policy="evict_first")
    place = (k // BLOCK_IN * (LINES * BLOCK_IN) + k % BLOCK_IN)[None, :] + p[:, None] * BLOCK_IN
    tl.store(target + place, tl.trans(rounded(value)))


@triton.jit
def convolve(x, arranged, copies, copies_view, arranged_view, y, tiles, C: tl.constexpr, OUT: tl.constexpr,
             LENGTH: tl.constexpr, RESULT: tl.constexpr, TAPS: tl.constexpr, DILATION: tl.constexpr,
             BACK: tl.constexpr, BLOCK: tl.constexpr, BLOCK_IN: tl.constexpr, STAGE_BLOCK: tl.constexpr,
             ACCELERATOR: tl.constexpr, POSITIONS_LEFT: tl.constexpr):
    """Result w is the sum over t of tap t of x[w - t * DILATION]; copies begin BACK columns before the results."""
    across: tl.constexpr = (RESULT + BLOCK - 1) // BLOCK
    lines: tl.constexpr = BLOCK + BACK
    own = tl.program_id(0) * (C // BLOCK_IN * lines)  # first line of the copy
    copy = copies + tl.program_id(0).to(tl.int64) * (C * lines)
    k = tl.arange(0, BLOCK_IN)
    out = tl.arange(0, OUT)
    windows = copy + (tl.arange(0, BLOCK)[:, None] * BLOCK_IN + k[None, :])
    taps = arranged + (out[:, None] * BLOCK_IN + k[None, :])
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image = tile // across + tl.zeros((), tl.int64)
        begin = tile % across * BLOCK
        source = x + image * (C * LENGTH)
        for at in tl.static_range(0, BLOCK, STAGE_BLOCK):
            copy_piece(source, copy, begin - BACK, at, C, LENGTH, lines, BLOCK_IN, STAGE_BLOCK)
        copy_piece(source, copy, begin - BACK, BLOCK, C, LENGTH, lines, BLOCK_IN, BACK)
        if ACCELERATOR:
            # What threads have written is to be seen by the accelerator too.
            tl.inline_asm_elementwise("fence.proxy.async; mov.b32 $0, $1;", "=r,r", [tl.arange(0, 128)],
                                      dtype=tl.int32, is_pure=False, pack=1)
        tl.debug_barrier()
        if POSITIONS_LEFT:
            sums = tl.zeros((BLOCK, OUT), tl.float32)
        else:
            sums = tl.zeros((OUT, BLOCK), tl.float32)
        for step in range(C // BLOCK_IN * TAPS):
            line = step // TAPS * lines + BACK - step % TAPS * DILATION
            if ACCELERATOR:
                window = copies_view.load([own + line, 0])
                weights = arranged_view.load([step * OUT, 0])
            else:
                window = tl.load(windows + line * BLOCK_IN)
                weights = tl.load(taps + step * (OUT * BLOCK_IN))
            if POSITIONS_LEFT:
                sums = tl.dot(window, weights.T, sums, input_precision="tf32")
            else:
                sums = tl.dot(weights, window.T, sums, input_precision="tf32")
        if POSITIONS_LEFT:
            sums = sums.T
        w = begin + tl.arange(0, BLOCK)
        place = y + image * (OUT * RESULT) + (out[:, None] * RESULT + w[None, :])
        tl.store(place, sums, mask=(w < RESULT)[None, :], eviction_policy="evict_first")
        tl.debug_barrier()  # before the next tile takes the place of this one


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=False):
        super().__init__()
        assert (stride, padding, output_padding, groups, bias) == (1, 0, 0, 1, False)
        self.conv1d_transpose = torch.nn.ConvTranspose1d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x):
        x = x.contiguous()
        layer = self.conv1d_transpose
        weight = layer.weight.contiguous()
        images, c, length = x.shape
        _, out, taps = weight.shape
        dilation = layer.dilation[0]
        result = length + (taps - 1) * dilation
        block, block_in = CONFIG["BLOCK"], CONFIG["BLOCK_IN"]
        back = max(4, triton.next_power_of_2((taps - 1) * dilation))
        arranged = x.new_empty(taps * (c // block_in) * out, block_in)
        arrange[(taps * (c // block_in),)](
            weight, arranged, C=c, OUT=out, TAPS=taps, BLOCK_IN=block_in, num_warps=4
        )
        y = x.new_empty(images, out, result)
        tiles = images * triton.cdiv(result, block)
        programs = CONFIG["PER_SM"]
        programs = min(tiles, programs * torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else programs)
        copies = x.new_empty(programs * (c // block_in) * (block + back), block_in)
        convolve[(programs,)](
            x, arranged, copies, TensorDescriptor.from_tensor(copies, [block, block_in]),
            TensorDescriptor.from_tensor(arranged, [out, block_in]), y, tiles, C=c, OUT=out, LENGTH=length,
            RESULT=result, TAPS=taps, DILATION=dilation, BACK=back, BLOCK=block, BLOCK_IN=block_in,
            STAGE_BLOCK=CONFIG["STAGE_BLOCK"], ACCELERATOR=CONFIG["ACCELERATOR"],
            POSITIONS_LEFT=CONFIG["POSITIONS_LEFT"], num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"],
        )
        return y
