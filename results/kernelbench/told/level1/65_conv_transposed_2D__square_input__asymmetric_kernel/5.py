"""A transposed convolution in one pass: what was a copy of all images is now one of a tile, which stays in the cache.

Tensor cores want channels side by side. Before, a kernel of its own wrote the images in that order and the products read
them again, twice the bytes that have to move. Now each program brings its tile, and the lines and columns around it that
the taps reach, in order in a piece of memory of its own, used again for each tile, so that the second level cache keeps it.
Several programs share a multiprocessor: some copy or store while others multiply. With LINES = 2, products for two
neighbouring lines use the same pieces of the copy and the same weights, which spares the second level cache reads. With WHOLE, all
images are copied first as before, but without borders of zeros, which the tensor memory accelerator fills in.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {'TOGETHER': 2, 'LINES': 1, 'ROWS': 16, 'PAIRS': 16, 'BLOCK_IN': 32, 'WARPS': 8, 'STAGES': 4, 'PER_SM': 0, 'STAGE_BLOCK': 64, 'ACCELERATOR': True, 'WHOLE': True}


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def stage(x, staged, C: tl.constexpr, AREA: tl.constexpr, BLOCK: tl.constexpr):
    """Copy images to channels-last order."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, C)
    inside = p < AREA
    value = tl.load(x + image * (C * AREA) + (c[:, None] * AREA + p[None, :]), mask=inside[None, :], other=0.0,
                    eviction_policy="evict_first")
    target = staged + image * (C * AREA) + (p[:, None] * C + c[None, :])
    tl.store(target, tl.trans(rounded(value)), mask=inside[:, None])


@triton.jit
def arrange(weight, arranged, C: tl.constexpr, OUT: tl.constexpr, TAPS: tl.constexpr, TOGETHER: tl.constexpr,
            BLOCK_IN: tl.constexpr):
    """[input, output, line, tap] to [chunk of inputs, place in the window, line; neighbour, output; input]."""
    window: tl.constexpr = TAPS + TOGETHER - 1
    step = tl.program_id(0)
    row = tl.arange(0, TOGETHER * OUT)[:, None]
    k = tl.arange(0, BLOCK_IN)[None, :]
    channel = step // (3 * window) * BLOCK_IN + k
    tap = TAPS - 1 - step // 3 % window + row // OUT
    source = ((channel * OUT + row % OUT) * 3 + step % 3) * TAPS + tap
    value = tl.load(weight + source, mask=(tap >= 0) & (tap < TAPS), other=0.0)
    tl.store(arranged + (step * (TOGETHER * OUT) + row) * BLOCK_IN + k, rounded(value))


@triton.jit
def convolve(x, arranged, copies, copies_view, arranged_view, y, tiles, C: tl.constexpr, OUT: tl.constexpr,
             H: tl.constexpr, W: tl.constexpr, TAPS: tl.constexpr, BEFORE: tl.constexpr, HIGH: tl.constexpr,
             WIDE: tl.constexpr, BACK: tl.constexpr, ACROSS: tl.constexpr, DOWN: tl.constexpr,
             TOGETHER: tl.constexpr, LINES: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr,
             BLOCK_IN: tl.constexpr, STAGE_BLOCK: tl.constexpr, ACCELERATOR: tl.constexpr, WHOLE: tl.constexpr):
    """Result (i, j) is the sum over a, b of tap (a, b) of x[i + BEFORE[0] - a, j + BEFORE[1] - b]. A copy of a tile has
    DOWN lines of each remainder by LINES, of ACROSS columns, and begins BACK columns and 2 lines before the results. Where
    the WHOLE images have been copied before, tiles of them are read, with zeros beyond their borders."""
    chunks: tl.constexpr = C // BLOCK_IN
    window: tl.constexpr = TAPS + TOGETHER - 1
    m: tl.constexpr = TOGETHER * OUT
    n: tl.constexpr = ROWS * PAIRS
    shift: tl.constexpr = BACK + BEFORE[1] - TAPS + 1
    across: tl.constexpr = (WIDE + PAIRS * TOGETHER - 1) // (PAIRS * TOGETHER)
    down: tl.constexpr = (HIGH + ROWS * LINES - 1) // (ROWS * LINES)
    area: tl.constexpr = LINES * DOWN * ACROSS
    own = tl.program_id(0) * (chunks * LINES)
    copy = copies + tl.program_id(0).to(tl.int64) * (C * area)
    k = tl.arange(0, BLOCK_IN)
    c = tl.arange(0, C)
    index = tl.arange(0, n)
    windows = copy + (((index // PAIRS * ACROSS + index % PAIRS * TOGETHER) * BLOCK_IN)[:, None] + k[None, :])
    taps = arranged + (tl.arange(0, m)[:, None] * BLOCK_IN + k[None, :])
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image = tile // (down * across) + tl.zeros((), tl.int64)
        h = tile // across % down * (ROWS * LINES)
        w = tile % across * (PAIRS * TOGETHER)
        source = x + image * (C * H * W)
        if not WHOLE:
            for begin in tl.range(0, area, STAGE_BLOCK, num_stages=1):
                p = begin + tl.arange(0, STAGE_BLOCK)
                r = p // ACROSS
                line = h + BEFORE[0] - 2 + r
                column = w - BACK + p % ACROSS
                there = (line >= 0) & (line < H) & (column >= 0) & (column < W) & (p < area)
                value = tl.load(source + (c[:, None] * (H * W) + (line * W + column)[None, :]), mask=there[None, :], other=0.0,
                                eviction_policy="evict_first")
                place = ((r % LINES * DOWN + r // LINES) * ACROSS + p % ACROSS) * BLOCK_IN
                place = (c // BLOCK_IN * (area * BLOCK_IN) + c % BLOCK_IN)[None, :] + place[:, None]
                tl.store(copy + place, tl.trans(rounded(value)), mask=(p < area)[:, None])
            if ACCELERATOR:
                # What threads have written is to be seen by the accelerator too.
                tl.inline_asm_elementwise("fence.proxy.async; mov.b32 $0, $1;", "=r,r", [tl.arange(0, 128)],
                                          dtype=tl.int32, is_pure=False, pack=1)
            tl.debug_barrier()
        first = tl.zeros((m, n), tl.float32)
        second = tl.zeros((m, n), tl.float32)
        if LINES == 1:
            for step in range(chunks * window * 3):
                line = 2 - step % 3
                chunk = step // 3 // window
                column = step // 3 % window + shift
                if WHOLE:
                    weights = arranged_view.load([step * m, 0])
                    column = w + column - BACK + 64 * TOGETHER  # not less than zero, to be divided
                    piece = copies_view.load([tile // (down * across), h + BEFORE[0] - 2 + line, column // TOGETHER - 64,
                                              column % TOGETHER * C + chunk * BLOCK_IN])
                    piece = tl.reshape(piece, (n, BLOCK_IN))
                elif ACCELERATOR:
                    weights = arranged_view.load([step * m, 0])
                    piece = tl.reshape(copies_view.load([own + chunk, line, column // TOGETHER, column % TOGETHER * BLOCK_IN]),
                                       (n, BLOCK_IN))
                else:
                    weights = tl.load(taps + step * (m * BLOCK_IN))
                    piece = tl.load(windows + (chunk * area + line * ACROSS + column) * BLOCK_IN)
                first = tl.dot(weights, piece.T, first, input_precision="tf32")
        else:
            for step in range(chunks * window):
                at = own + step // window * 2
                column = step % window + shift
                g = column // TOGETHER
                b = column % TOGETHER * BLOCK_IN
                if ACCELERATOR:
                    weights0 = arranged_view.load([step * (3 * m), 0])
                    weights1 = arranged_view.load([step * (3 * m) + m, 0])
                    weights2 = arranged_view.load([step * (3 * m) + 2 * m, 0])
                    piece0 = tl.reshape(copies_view.load([at, 0, g, b]), (n, BLOCK_IN))
                    piece1 = tl.reshape(copies_view.load([at + 1, 0, g, b]), (n, BLOCK_IN))
                    piece2 = tl.reshape(copies_view.load([at, 1, g, b]), (n, BLOCK_IN))
                    piece3 = tl.reshape(copies_view.load([at + 1, 1, g, b]), (n, BLOCK_IN))
                else:
                    here = taps + step * (3 * m * BLOCK_IN)
                    weights0 = tl.load(here)
                    weights1 = tl.load(here + m * BLOCK_IN)
                    weights2 = tl.load(here + 2 * m * BLOCK_IN)
                    there = windows + (step // window * area + column) * BLOCK_IN
                    piece0 = tl.load(there)
                    piece1 = tl.load(there + DOWN * ACROSS * BLOCK_IN)
                    piece2 = tl.load(there + ACROSS * BLOCK_IN)
                    piece3 = tl.load(there + (DOWN + 1) * ACROSS * BLOCK_IN)
                first = tl.dot(weights2, piece0.T, first, input_precision="tf32")
                second = tl.dot(weights2, piece1.T, second, input_precision="tf32")
                first = tl.dot(weights1, piece1.T, first, input_precision="tf32")
                second = tl.dot(weights1, piece2.T, second, input_precision="tf32")
                first = tl.dot(weights0, piece2.T, first, input_precision="tf32")
                second = tl.dot(weights0, piece3.T, second, input_precision="tf32")
        row = h + tl.arange(0, ROWS) * LINES
        column = w + tl.arange(0, PAIRS * TOGETHER)
        target = y + image * (OUT * HIGH * WIDE) + (tl.arange(0, OUT)[:, None, None] * (HIGH * WIDE)
                                                    + row[None, :, None] * WIDE + column[None, None, :])
        inside = (row < HIGH)[None, :, None] & (column < WIDE)[None, None, :]
        first = tl.permute(tl.reshape(first, (TOGETHER, OUT, ROWS, PAIRS)), (1, 2, 3, 0))
        tl.store(target, tl.reshape(first, (OUT, ROWS, PAIRS * TOGETHER)), mask=inside, eviction_policy="evict_first")
        if LINES == 2:
            inside = (row + 1 < HIGH)[None, :, None] & (column < WIDE)[None, None, :]
            second = tl.permute(tl.reshape(second, (TOGETHER, OUT, ROWS, PAIRS)), (1, 2, 3, 0))
            second = tl.reshape(second, (OUT, ROWS, PAIRS * TOGETHER))
            tl.store(target + WIDE, second, mask=inside, eviction_policy="evict_first")
        if not WHOLE:
            tl.debug_barrier()  # before the next tile takes the place of this one


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=False):
        super().__init__()
        assert (kernel_size[0], stride, output_padding, groups, bias) == (3, 1, 0, 1, False)
        self.conv_transpose2d = torch.nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=False
        )

    def forward(self, x):
        x = x.contiguous()
        layer = self.conv_transpose2d
        weight = layer.weight.contiguous()
        images, c, height, width = x.shape
        out, _, taps = weight.shape[1:]
        before = tuple(layer.padding)
        high, wide = height + 2 - 2 * before[0], width + taps - 1 - 2 * before[1]
        names = ("TOGETHER", "LINES", "ROWS", "PAIRS", "BLOCK_IN", "STAGE_BLOCK", "ACCELERATOR", "WHOLE")
        together, lines, rows, pairs, block_in = (CONFIG[name] for name in names[:5])
        chunks, m = c // block_in, together * out
        arranged = x.new_empty(chunks * (taps + together - 1) * 3 * m, block_in)
        arrange[(chunks * (taps + together - 1) * 3,)](
            weight, arranged, C=c, OUT=out, TAPS=taps, TOGETHER=together, BLOCK_IN=block_in, num_warps=4
        )
        y = x.new_empty(images, out, high, wide)
        tiles = images * triton.cdiv(high, rows * lines) * triton.cdiv(wide, pairs * together)
        programs = CONFIG["PER_SM"] or tiles
        if x.is_cuda:
            programs *= torch.cuda.get_device_properties(x.device).multi_processor_count
        programs = min(tiles, programs)
        back = triton.cdiv(max(taps - 1 - before[1], 0), 4) * 4
        across = triton.cdiv(pairs * together + back + before[1], 4) * 4
        down = rows + (lines + 1) // lines
        if CONFIG["WHOLE"]:
            assert lines == 1 and width % together == 0
            copies = x.new_empty(images, height, width // together, together * c)
            stage[(triton.cdiv(height * width, CONFIG["STAGE_BLOCK"]), images)](
                x, copies, C=c, AREA=height * width, BLOCK=CONFIG["STAGE_BLOCK"], num_warps=4
            )
        else:
            copies = x.new_empty(programs * chunks * lines, down, across // together, together * block_in)
        convolve[(programs,)](
            x, arranged, copies, TensorDescriptor.from_tensor(copies, [1, rows, pairs, block_in]),
            TensorDescriptor.from_tensor(arranged, [m, block_in]), y, tiles, C=c, OUT=out, H=height, W=width, TAPS=taps,
            BEFORE=before, HIGH=high, WIDE=wide, BACK=back, ACROSS=across, DOWN=down,
            **{name: CONFIG[name] for name in names}, num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"],
        )
        return y
