"""Launches of our Triton kernel for attention: how rows, keys and values are divided."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

from kernel_smith.proposers.seed.library_calls import Attention, contiguous_strides
from kernel_smith.proposers.seed.own_kernels import Visit
from kernel_smith.proposers.seed.triton_launch import block_of, launch

_PROCESSORS = 132  # of a Hopper GPU
_FEW_ROWS = 64  # then all heads that share keys go together


@dataclass(frozen=True)
class Tiles:
    """What a program works on at once."""

    rows: int
    keys: int
    width: int
    values: int
    warps: int
    stages: int


# By the width of keys or values, whichever are wider. On a Hopper GPU no register is spilled.
_OF_HALVES = {
    64: Tiles(rows=128, keys=128, width=64, values=64, warps=4, stages=3),
    128: Tiles(rows=128, keys=128, width=128, values=128, warps=8, stages=2),
    256: Tiles(rows=128, keys=64, width=256, values=256, warps=8, stages=2),
    512: Tiles(rows=64, keys=32, width=64, values=512, warps=8, stages=2),
}
_OF_TF32 = {
    64: Tiles(rows=128, keys=64, width=64, values=64, warps=4, stages=3),
    128: Tiles(rows=128, keys=64, width=128, values=128, warps=8, stages=2),
    256: Tiles(rows=64, keys=32, width=256, values=256, warps=4, stages=2),
    512: Tiles(rows=64, keys=32, width=64, values=512, warps=8, stages=2),
}
_EXACT = {
    64: Tiles(rows=64, keys=64, width=32, values=64, warps=8, stages=2),
    128: Tiles(rows=64, keys=32, width=32, values=128, warps=8, stages=2),
    256: Tiles(rows=64, keys=32, width=32, values=256, warps=8, stages=2),
    512: Tiles(rows=64, keys=32, width=32, values=256, warps=8, stages=2),
}


def write_attention(found: Attention, precision: str, visit: Visit) -> list[str]:
    """Statements that attend, in one launch; or in two, where rows are few and keys many."""
    batches, heads, rows, keys, _, values = found.sizes
    shared_by = heads // found.k.size[1]
    stacked = shared_by if rows * shared_by <= _FEW_ROWS else 1
    tiles = choose_tiles(found, stacked * rows, precision)
    blocks = -(-stacked * rows // tiles.rows) * -(-values // tiles.values)
    programs = batches * heads // stacked * blocks
    splits = _splits(programs, keys, tiles)
    numbers: dict[str, object] = {
        "HEADS": heads,
        "SHARED_BY": shared_by,
        "STACKED": stacked,
        **_shape(found),
        "PRECISION": precision,
        "BLOCK_ROWS": tiles.rows,
        "BLOCK_KEYS": tiles.keys,
        "BLOCK_WIDTH": tiles.width,
        "BLOCK_VALUES": tiles.values,
        "SPLITS": splits,
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
    }
    operands = [found.q, found.k, found.v, found.mask]
    given = ["None" if one is None else ast.unparse(visit(one.passed)) for one in operands]
    y = ast.unparse(visit(found.result.passed))
    grid = [str(programs), str(splits)]
    if splits == 1:
        return [launch("attend", grid, [*given, y, "None"], numbers)]
    parts, peaks = f"{y}_parts", f"{y}_peaks"
    places = (batches, heads, rows, splits)
    *outer, _, inner = contiguous_strides((*places, values))
    device = f"device={given[0]}.device"
    return [
        f"{parts} = torch.empty({(*places, values)}, dtype=torch.float32, {device})",
        f"{peaks} = torch.empty({places}, dtype=torch.float32, {device})",
        launch("attend", grid, [*given, parts, peaks], numbers | {"Y": (*outer, inner)}),
        launch(
            "attend_join",
            [str(batches * heads * rows)],
            [parts, peaks, y],
            {
                "HEADS": heads,
                "ROWS": rows,
                "VALUES": values,
                "Y": found.result.stride,
                "SPLITS": splits,
                "BLOCK_SPLITS": 1 << (splits - 1).bit_length(),
                "BLOCK_VALUES": 1 << (values - 1).bit_length(),
            },
        ),
    ]


def _shape(found: Attention) -> dict[str, object]:
    return {
        **dict(zip(("ROWS", "KEYS", "WIDTH", "VALUES"), found.sizes[2:], strict=True)),
        **{name: one.stride for name, one in zip("QKV", (found.q, found.k, found.v), strict=True)},
        "MASK": found.mask.stride if found.mask else (0, 0, 0, 0),
        "Y": found.result.stride,
        "SCALE": found.scale,
        "CAUSAL": found.causal,
    }


def choose_tiles(found: Attention, rows: int, precision: str) -> Tiles:
    """Return the largest blocks, of those that fit into registers, that are not much larger than
    what there is; a mask takes registers, too."""
    *_, keys, width, values = found.sizes
    half = found.dtype != "torch.float32"
    table = _OF_HALVES if half else _EXACT if precision == "ieee" else _OF_TF32
    most = table[max(64, block_of(max(width, values), 512))]
    rows_block = block_of(rows, most.rows)
    return Tiles(
        rows=rows_block,
        keys=block_of(keys, most.keys // 2 if found.mask else most.keys),
        width=block_of(width, most.width),
        values=block_of(values, most.values),
        warps=most.warps if rows_block >= _FEW_ROWS else 4,
        stages=most.stages,
    )


def _splits(programs: int, keys: int, tiles: Tiles) -> int:
    """As many parts of the keys as fill the GPU twice, of at least two blocks each."""
    if 2 * programs > _PROCESSORS:
        return 1
    return max(1, min(2 * _PROCESSORS // programs, math.ceil(keys / tiles.keys) // 2))
