"""A transposed convolution that multiplies with next to no zeros: taps along a line are outputs of the product, not inputs.

Before, a product gave 8 neighbours of a line from the window of 14 columns that they have in common: two thirds of
what was multiplied were zeros of the arranged weights and of the border. Now a product of pairs of input columns with all
taps of a line (4 pairs of taps, 7 of the 8 real) gives what each pair adds to the results 0 to 3 pairs further on. These
parts are moved and added up only at the end, once all planes and lines of taps are summed. A tile is whole lines of the
images, the tensor memory accelerator fills in zeros beyond planes and lines, so that nothing is padded in memory, and taps
of planes or lines that see nothing but zeros are left out.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {'PLANES': 2, 'ROWS': 2, 'BLOCK_IN': 32, 'WARPS': 4, 'STAGES': 3, 'STAGE_BLOCK': 128, 'STAGE_WARPS': 4, 'PERSISTENT': False, 'GATHER_LAST': True, 'ACCELERATOR': True}


@triton.jit
def rounded(value):
    """Round to the nearest number of TF32, since the products would cut off instead."""
    bits = value.to(tl.int32, bitcast=True)
    return ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def stage(x, staged, C: tl.constexpr, VOLUME: tl.constexpr, BLOCK: tl.constexpr):
    """Copy images to channels-last order."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, C)
    inside = p < VOLUME
    value = tl.load(x + image * (C * VOLUME) + (c[:, None] * VOLUME + p[None, :]), mask=inside[None, :], other=0.0,
                    eviction_policy="evict_first")
    target = staged + image * (C * VOLUME) + (p[:, None] * C + c[None, :])
    tl.store(target, tl.trans(rounded(value)), mask=inside[:, None])


@triton.jit
def arrange(weight, arranged, C: tl.constexpr, OUT: tl.constexpr, TAPS: tl.constexpr):
    """[input, output, plane, line, tap] to [plane, line; pairs further on, output, column of the pair; column, input]."""
    lines: tl.constexpr = TAPS[0] * TAPS[1]
    row = tl.program_id(0)  # of 4 * OUT * 2 for each line of taps
    k = tl.arange(0, 2 * C)
    line = row // (8 * OUT)
    tap = row % (8 * OUT) // (2 * OUT) * 2 + row % 2 - k // C
    source = ((k % C * OUT + row // 2 % OUT) * lines + line) * TAPS[2] + tap
    there = (tap >= 0) & (tap < TAPS[2])
    tl.store(arranged + row * (2 * C) + k, rounded(tl.load(weight + source, mask=there, other=0.0)))


@triton.jit
def convolve(staged, arranged, columns, taps, y, tiles, C: tl.constexpr, OUT: tl.constexpr, SIZE: tl.constexpr, TAPS: tl.constexpr,
             PAIRS: tl.constexpr, PLANES: tl.constexpr, ROWS: tl.constexpr, BLOCK_IN: tl.constexpr,
             GATHER_LAST: tl.constexpr, ACCELERATOR: tl.constexpr):
    """Pairs of columns in ROWS lines of PLANES planes, and all results of these lines."""
    deep: tl.constexpr = SIZE[0] + TAPS[0] - 1
    high: tl.constexpr = SIZE[1] + TAPS[1] - 1
    wide: tl.constexpr = SIZE[2] + TAPS[2] - 1
    down: tl.constexpr = (deep + PLANES - 1) // PLANES
    along: tl.constexpr = (high + ROWS - 1) // ROWS
    n: tl.constexpr = PLANES * ROWS * PAIRS
    chunks: tl.constexpr = 2 * C // BLOCK_IN
    # Without the accelerator: where the tile's pairs are, from its first line on.
    k = tl.arange(0, BLOCK_IN)
    column = tl.arange(0, n)
    plane_of = column // (ROWS * PAIRS)
    row_of = column // PAIRS % ROWS
    spread = ((plane_of * SIZE[1] + row_of) * SIZE[2] + column % PAIRS * 2) * C
    left = arranged + (tl.arange(0, 8 * OUT)[:, None] * (2 * C) + k[None, :])
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image = tile // (down * along)
        d = tile // along % down * PLANES
        h = tile % along * ROWS
        # Taps further back than this, or less far, see only zeros.
        from_d = tl.maximum(d - SIZE[0] + 1, 0)
        from_h = tl.maximum(h - SIZE[1] + 1, 0)
        many_h = tl.minimum(h + ROWS, TAPS[1]) - from_h
        many = (tl.minimum(d + PLANES, TAPS[0]) - from_d) * many_h
        parts = tl.zeros((8 * OUT, n), tl.float32)
        for step in range(many * chunks):
            chunk = step % chunks * BLOCK_IN
            a = from_d + step // chunks // many_h
            b = from_h + step // chunks % many_h
            if ACCELERATOR:
                piece = tl.reshape(columns.load([image, d - a, h - b, 0, chunk]), (n, BLOCK_IN))
                weights = taps.load([(a * TAPS[1] + b) * (8 * OUT), chunk])
            else:
                from_plane = d - a + plane_of
                from_row = h - b + row_of
                seen = (from_plane >= 0) & (from_plane < SIZE[0]) & (from_row >= 0) & (from_row < SIZE[1])
                seen &= column % PAIRS * 2 < SIZE[2]
                far = ((image * SIZE[0] + d - a) * SIZE[1] + h - b) * SIZE[2] * C + chunk
                piece = tl.load(staged + far + (spread[:, None] + k[None, :]), mask=seen[:, None], other=0.0)
                weights = tl.load(left + ((a * TAPS[1] + b) * (16 * OUT * C) + chunk))
            parts = tl.dot(weights, piece.T, parts, input_precision="tf32")
        # Part s of a pair belongs to the pair of results s further on; beyond the last pair of inputs are three more.
        pair = tl.arange(0, PAIRS)
        s = tl.arange(0, 4)
        if GATHER_LAST:
            parts = tl.reshape(parts, (4, 2 * OUT, PLANES * ROWS, PAIRS))
            index = (pair[None, None, None, :] - s[:, None, None, None]) & (PAIRS - 1)
            parts = tl.gather(parts, tl.broadcast_to(index, (4, 2 * OUT, PLANES * ROWS, PAIRS)), 3)
            real = pair[None, None, None, :] >= s[:, None, None, None]
            body = tl.sum(tl.where(real, parts, 0.0), 0)
            tail = tl.sum(tl.where(real, 0.0, parts), 0)
        else:
            parts = tl.reshape(parts, (4, 2 * OUT, n))
            at = tl.arange(0, n)[None, None, :]
            before = s[:, None, None]
            index = at // PAIRS * PAIRS + ((at - before) & (PAIRS - 1))
            parts = tl.gather(parts, tl.broadcast_to(index, (4, 2 * OUT, n)), 2)
            real = at % PAIRS >= before
            body = tl.reshape(tl.sum(tl.where(real, parts, 0.0), 0), (2 * OUT, PLANES * ROWS, PAIRS))
            tail = tl.reshape(tl.sum(tl.where(real, 0.0, parts), 0), (2 * OUT, PLANES * ROWS, PAIRS))
        body = tl.reshape(tl.permute(tl.reshape(body, (OUT, 2, PLANES * ROWS, PAIRS)), (0, 2, 3, 1)),
                          (OUT, PLANES * ROWS, 2 * PAIRS))
        tail = tl.reshape(tl.permute(tl.reshape(tail, (OUT, 2, PLANES * ROWS, PAIRS)), (0, 2, 3, 1)),
                          (OUT, PLANES * ROWS, 2 * PAIRS))
        line = tl.arange(0, PLANES * ROWS)
        plane = d + line // ROWS
        row = h + line % ROWS
        inside = ((plane < deep) & (row < high))[None, :, None]
        w = tl.arange(0, 2 * PAIRS)[None, None, :]
        place = tl.arange(0, OUT)[:, None, None] * (deep * high * wide) + ((plane * high + row) * wide)[None, :, None] + w
        target = y + image.to(tl.int64) * (OUT * deep * high * wide) + place
        tl.store(target, body, mask=inside & (w < wide))
        tl.store(target + 2 * PAIRS, tail, mask=inside & (w < 6) & (w + 2 * PAIRS < wide))


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=(1, 1, 1), padding=(0, 0, 0), output_padding=(0, 0, 0), groups=1, bias=False):
        super().__init__()
        plain = (tuple(stride), tuple(padding), tuple(output_padding), groups, bias)
        assert kernel_size[2] in (6, 7) and plain == ((1, 1, 1), (0, 0, 0), (0, 0, 0), 1, False)
        self.conv_transpose3d = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x):
        x = x.contiguous()
        weight = self.conv_transpose3d.weight.contiguous()
        images, c = x.shape[:2]
        size = tuple(x.shape[2:])
        out, *taps = weight.shape[1:]
        assert size[2] % 2 == 0
        planes, rows, block_in = CONFIG["PLANES"], CONFIG["ROWS"], CONFIG["BLOCK_IN"]
        volume = size[0] * size[1] * size[2]
        staged = x.new_empty(images, *size[:2], size[2] // 2, 2 * c)
        stage[(triton.cdiv(volume, CONFIG["STAGE_BLOCK"]), images)](
            x, staged, C=c, VOLUME=volume, BLOCK=CONFIG["STAGE_BLOCK"], num_warps=CONFIG["STAGE_WARPS"]
        )
        arranged = x.new_empty(taps[0] * taps[1] * 8 * out, 2 * c)
        arrange[(len(arranged),)](weight, arranged, C=c, OUT=out, TAPS=tuple(taps), num_warps=1)
        result = [s + t - 1 for s, t in zip(size, taps)]
        y = x.new_empty(images, out, *result)
        pairs = triton.next_power_of_2(size[2] // 2)
        tiles = images * triton.cdiv(result[0], planes) * triton.cdiv(result[1], rows)
        programs = tiles
        if CONFIG["PERSISTENT"]:
            programs = min(tiles, torch.cuda.get_device_properties(x.device).multi_processor_count * CONFIG["PERSISTENT"])
        assert CONFIG["ACCELERATOR"] or staged.numel() < 2**31
        convolve[(programs,)](
            staged, arranged, TensorDescriptor.from_tensor(staged, [1, planes, rows, pairs, block_in]),
            TensorDescriptor.from_tensor(arranged, [8 * out, block_in]),
            y, tiles, C=c, OUT=out, SIZE=size, TAPS=tuple(taps), PAIRS=pairs, PLANES=planes, ROWS=rows,
            BLOCK_IN=block_in, GATHER_LAST=CONFIG["GATHER_LAST"], ACCELERATOR=CONFIG["ACCELERATOR"],
            num_warps=CONFIG["WARPS"], num_stages=CONFIG["STAGES"],
        )
        return y
