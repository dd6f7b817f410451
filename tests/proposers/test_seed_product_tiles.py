"""How a product is divided: all processors are at work, and nothing exceeds what one holds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.proposers.seed.product_tiles import choose_splits, choose_tile

SHARED_BYTES = 227 << 10
extents = st.integers(1, 20_000)


@given(extents, extents, extents, st.integers(1, 64), st.sampled_from([2, 4]))
def test_blocks_are_what_a_processor_can_hold(
    rows: int, inner: int, columns: int, batch: int, width: int
) -> None:
    tile = choose_tile(rows, inner, columns, batch, width)
    for block in (tile.rows, tile.columns, tile.inner):
        assert block >= 16 and math.log2(block).is_integer()
    assert (tile.rows + tile.columns) * tile.inner * width * tile.stages <= SHARED_BYTES
    assert tile.rows * tile.columns <= 128 * 32 * tile.warps, "sums in half of the registers"
    assert tile.rows < 2 * max(rows, 16) and tile.columns < 2 * max(columns, 16)


@pytest.mark.parametrize(("rows", "columns"), [(1, 14336), (16, 4096), (7, 9999), (32, 28672)])
def test_few_rows_are_divided_by_columns_until_all_processors_read(rows: int, columns: int) -> None:
    tile = choose_tile(rows, 7168, columns, 1, 2)
    assert -(-columns // tile.columns) >= 0.9 * 132
    on_its_way = tile.columns * tile.inner * 2 * (tile.stages - 1)
    assert on_its_way >= 32 << 10


def test_large_products_have_large_blocks_and_small_ones_small() -> None:
    assert choose_tile(4096, 4096, 4096, 1, 2).columns == 256
    assert choose_tile(512, 4096, 512, 1, 2).rows == 64


def test_long_sums_are_divided_where_there_are_few_blocks() -> None:
    tile = choose_tile(256, 131072, 256, 1, 4)
    assert (tile.rows, tile.columns) == (128, 128), "as large as if there were many"
    assert choose_splits(tile, 256, 131072, 256, 1) == 66
    vector = choose_tile(2048, 1 << 20, 1, 1, 4)
    assert choose_splits(vector, 2048, 1 << 20, 1, 1) == 16
    assert choose_splits(choose_tile(256, 500, 256, 1, 4), 256, 500, 256, 1) == 1, "too short"
    assert choose_splits(choose_tile(4096, 1 << 20, 4096, 1, 4), 4096, 1 << 20, 4096, 1) == 1
