"""Where results have lain: memory counts as new once."""

from __future__ import annotations

from kernel_smith.evaluation.judge.platform.used_memory import UsedMemory

BLOCK = 64 << 10


def test_memory_is_new_once() -> None:
    used = UsedMemory()
    places = [(10 * BLOCK, 4 * BLOCK), (20 * BLOCK, BLOCK)]
    assert used.add(places) == 5 * BLOCK
    assert used.add(places) == 0
    assert used.add([(12 * BLOCK, 4 * BLOCK)]) == 2 * BLOCK


def test_what_fills_no_block_does_not_count() -> None:
    used = UsedMemory()
    assert used.add([(BLOCK + 1, BLOCK), (5 * BLOCK, BLOCK - 1), (9 * BLOCK, 0)]) == 0
    assert used.add([(BLOCK + 1, 2 * BLOCK)]) == BLOCK, "the one that lies in it as a whole"
