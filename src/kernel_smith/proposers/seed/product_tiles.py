"""How our Triton kernel divides a product among the processors of a Hopper GPU."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_smith.proposers.seed.triton_launch import block_of

_PROCESSORS = 132
_ALL_AT_WORK = 0.9  # of the processors: with fewer programs blocks had better be smaller
_FEW_ROWS = 32  # then reading the other matrix is all that takes time
_BYTES_OF_STAGE = 24 << 10  # so that enough is on its way to keep the memory busy
_LEAST_INNER, _MOST_INNER = 32, 256
_STAGES_OF_FEW = 4
_LEAST_BLOCKS = 8  # of a part, so that it is worth adding up


@dataclass(frozen=True)
class Tile:
    """What a program works on at once."""

    rows: int
    columns: int
    inner: int
    warps: int
    stages: int


_OF_HALVES = (
    Tile(rows=128, columns=256, inner=64, warps=8, stages=3),
    Tile(rows=128, columns=128, inner=64, warps=8, stages=3),
    Tile(rows=128, columns=64, inner=64, warps=4, stages=4),
    Tile(rows=64, columns=128, inner=64, warps=4, stages=4),
    Tile(rows=64, columns=64, inner=64, warps=4, stages=4),
    Tile(rows=64, columns=32, inner=128, warps=4, stages=4),
)
_OF_WORDS = (
    Tile(rows=128, columns=128, inner=32, warps=8, stages=3),
    Tile(rows=128, columns=64, inner=32, warps=4, stages=3),
    Tile(rows=64, columns=64, inner=32, warps=4, stages=4),
    Tile(rows=64, columns=32, inner=64, warps=4, stages=4),
)


def choose_tile(rows: int, inner: int, columns: int, batch: int, width: int) -> Tile:
    """Return the largest blocks that give all processors something to do, if need be in parts of
    what is summed; `width`: bytes of an element."""
    if rows <= _FEW_ROWS:
        return _for_few_rows(rows, inner, columns, batch, width)
    known = _OF_HALVES if width == 2 else _OF_WORDS
    high, wide = block_of(rows, known[0].rows), block_of(columns, known[0].columns)
    fitting = [tile for tile in known if tile.rows <= high and tile.columns <= wide]
    if not fitting:
        depth = block_of(inner, known[0].inner)
        return Tile(high, wide, depth, warps=4, stages=known[0].stages)
    enough = [t for t in fitting if _busy(rows, columns, batch, t.rows, t.columns)]
    divided = [t for t in fitting if _fills_in_parts(t, rows, inner, columns, batch)]
    best = next(iter(enough or divided), fitting[-1])
    return Tile(best.rows, best.columns, block_of(inner, best.inner), best.warps, best.stages)


def choose_splits(tile: Tile, rows: int, inner: int, columns: int, batch: int) -> int:
    """Return in how many parts to sum, each by programs of its own: one, unless there are too few
    for half of the processors, and several blocks for each part."""
    programs = _programs(rows, columns, batch, tile.rows, tile.columns)
    if 2 * programs > _PROCESSORS:
        return 1
    return max(1, min(2 * _PROCESSORS // programs, inner // (_LEAST_BLOCKS * tile.inner)))


def _fills_in_parts(tile: Tile, rows: int, inner: int, columns: int, batch: int) -> bool:
    parts = choose_splits(tile, rows, inner, columns, batch)
    return parts > 1 and _busy(rows, columns, parts * batch, tile.rows, tile.columns)


def _for_few_rows(rows: int, inner: int, columns: int, batch: int, width: int) -> Tile:
    high = block_of(rows, _FEW_ROWS)
    widths = [wide for wide in (128, 64, 32) if wide <= block_of(columns, 128)] or [16]
    enough = [wide for wide in widths if _busy(rows, columns, batch, high, wide)]
    wide = next(iter(enough), widths[-1])
    depth = _LEAST_INNER
    while depth < _MOST_INNER and 2 * depth * (high + wide) * width <= _BYTES_OF_STAGE:
        depth *= 2
    return Tile(high, wide, block_of(inner, depth), warps=4, stages=_STAGES_OF_FEW)


def _busy(rows: int, columns: int, batch: int, high: int, wide: int) -> bool:
    return _programs(rows, columns, batch, high, wide) >= _ALL_AT_WORK * _PROCESSORS


def _programs(rows: int, columns: int, batch: int, high: int, wide: int) -> int:
    return -(-rows // high) * -(-columns // wide) * batch
