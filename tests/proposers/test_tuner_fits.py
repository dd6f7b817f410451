"""What the tuner refuses without measuring, and what it must not refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_smith.proposers.tuner.find import find
from kernel_smith.proposers.tuner.fits import Fitting
from kernel_smith.records import Task, Workload

MATMUL = """
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(4):
        total = tl.dot(a, b, total)


def launch(a, b, c):
    matmul[(1,)](a, b, c, BM=128, BN=64, BK=32, num_warps=4, num_stages=3)
"""
UNKNOWN_SIZES = Task(name="matmul", source="def get_inputs():\n    return []\n")
KNOWN_SIZES = Task(
    name="rows",
    source="def get_inputs(rows=64, columns=64, dtype='float32'):\n    return []\n",
    workloads=(Workload(name="wide", params={"columns": 1000}), Workload(name="usual")),
)
TILES = "TUNABLES = {'BLOCK': 64, 'ROW_TILE': 4, 'tile_columns': 64}\n"


def problem(source: str, task: Task, **values: int) -> str:
    space = find(source)
    return Fitting(space, task).problem(space.current | values)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"num_warps": 64}, "threads"),
        ({"BM": 96}, "BM=96 in tl.arange is no power of two"),
        ({"BM": 1024, "BN": 2048, "num_warps": 32}, "a tensor of"),
        ({"BM": 1024, "BN": 512}, "registers of 128 threads"),
        ({"BK": 512}, "bytes of shared memory"),
        ({"BK": 256, "num_stages": 5}, "bytes of shared memory"),
    ],
)
def test_a_launch_that_cannot_fit_is_refused(values: dict[str, int], what: str) -> None:
    assert what in problem(MATMUL, UNKNOWN_SIZES, **values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"BM": 256, "BN": 256, "num_warps": 8},
        {"BK": 128, "num_stages": 4},
        {"num_warps": 16},
        {"BM": 16, "BN": 16},
    ],
)
def test_a_launch_that_may_fit_is_not_refused(values: dict[str, int]) -> None:
    assert problem(MATMUL, UNKNOWN_SIZES, **values) == ""


def test_smaller_elements_need_less_shared_memory() -> None:
    eight_bits = MATMUL.replace("import triton\n", "import triton  # float8\n", 1)
    assert problem(eight_bits, UNKNOWN_SIZES, BK=512) == ""


def test_a_tile_beyond_everything_there_is_is_refused() -> None:
    assert problem(TILES, KNOWN_SIZES, BLOCK=1 << 16) == ""
    assert "exceeds the sizes" in problem(TILES, KNOWN_SIZES, BLOCK=1 << 17)


def test_a_tile_is_bounded_by_the_extent_it_is_named_for() -> None:
    assert problem(TILES, KNOWN_SIZES, tile_columns=1024) == ""
    assert "tile_columns=2048" in problem(TILES, KNOWN_SIZES, tile_columns=2048)


def test_without_known_sizes_no_tile_is_refused() -> None:
    assert problem(TILES, UNKNOWN_SIZES, BLOCK=1 << 30) == ""


def test_what_a_candidate_has_already_is_never_too_large_for_the_task() -> None:
    assert problem("TUNABLES = {'BLOCK': 1073741824}\n", KNOWN_SIZES) == ""


def honest_gpu_candidates() -> list[Path]:
    return sorted((Path(__file__).parent.parent / "gpu" / "honest").glob("*.py"))


@pytest.mark.parametrize("path", honest_gpu_candidates(), ids=lambda path: path.stem)
def test_no_honest_candidate_is_refused_as_it_is(path: Path) -> None:
    assert problem(path.read_text(encoding="utf-8"), KNOWN_SIZES) == ""
