"""Programs that compile to the same, told by their texts and what was made of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kernel_smith.evaluation.judge.timing.twins import agree, fingerprint
from kernel_smith.records import Timing

HOST = '''
SOURCE = r"""TEXT"""
kernels = cpp(SOURCE)

class ModelNew:
    def forward(self, x):
        return kernels.scale(x, FACTOR)
'''

TRITON = """
@triton.jit
def kernel(x, BLOCK: tl.constexpr = 64):
    BODY

class ModelNew:
    def forward(self, x):
        kernel[(1,)](x, num_warps=WARPS)
"""


@pytest.fixture
def product(tmp_path: Path) -> Path:
    path = tmp_path / "kernels-0.so"
    path.write_bytes(b"machine code")
    return path


def host(text: str = "int a;", factor: str = "2.0") -> str:
    return HOST.replace("TEXT", text).replace("FACTOR", factor)


def triton(body: str = "pass", warps: int = 4) -> str:
    return TRITON.replace("BODY", body).replace("WARPS", str(warps))


def test_the_text_of_a_kernel_does_not_count_but_what_it_became(
    product: Path, tmp_path: Path
) -> None:
    one = fingerprint(host("int a;"), ["int a;"], [product])
    assert fingerprint(host("int a; // why"), ["int a; // why"], [product]) == one
    other = tmp_path / "other.so"
    other.write_bytes(b"other machine code")
    assert fingerprint(host("int a;"), ["int a;"], [other]) != one
    assert fingerprint(host("int a;"), ["int a;"], [product, other]) != one


def test_the_program_around_it_counts_but_for_its_looks(product: Path) -> None:
    one = fingerprint(host(), ["int a;"], [product])
    assert fingerprint(host() + "\n# a remark\n", ["int a;"], [product]) == one
    assert fingerprint(host(factor="3.0"), ["int a;"], [product]) != one
    assert fingerprint(host("int b;"), ["int a;"], [product]) != one, "nobody compiled that text"


def test_of_a_jitted_function_only_the_signature_counts(product: Path) -> None:
    one = fingerprint(triton(), [], [product], jitted=True)
    assert fingerprint(triton("y = x + 0"), [], [product], jitted=True) == one
    assert fingerprint(triton(warps=8), [], [product], jitted=True) != one
    wider = triton().replace("= 64", "= 128")
    assert fingerprint(wider, [], [product], jitted=True) != one


def test_where_kernels_are_texts_every_function_counts(product: Path) -> None:
    one = fingerprint(triton(), [], [product])
    assert fingerprint(triton("y = x + 0"), [], [product]) != one


def timing(*speedups: tuple[float, float]) -> Timing:
    """Per workload the interval of a speedup."""
    workloads = [
        SimpleNamespace(baselines=[SimpleNamespace(speedup=SimpleNamespace(low=low, high=high))])
        for low, high in speedups
    ]
    return cast(Timing, SimpleNamespace(workloads=workloads))


def test_times_agree_where_no_workload_says_otherwise() -> None:
    known = timing((1.9, 2.1), (2.9, 3.1))
    assert agree(timing((1.0, 2.0), (3.0, 4.0)), known)
    assert not agree(timing((1.0, 1.8), (2.9, 3.1)), known), "slower"
    assert not agree(timing((1.9, 2.1), (3.2, 3.3)), known), "faster: whose times are these?"


@pytest.fixture
def usual_recursion_limit() -> Iterator[None]:
    """Python's own: libraries that other tests import raise it for the whole process."""
    found = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(found)


@pytest.mark.usefixtures("usual_recursion_limit")
def test_a_program_that_is_nested_beyond_reason_has_no_twin(product: Path) -> None:
    deep = f"NUMBER = {'+'.join(['1'] * 900)}\n"
    assert fingerprint(host() + deep, ["int a;"], [product]) is None
