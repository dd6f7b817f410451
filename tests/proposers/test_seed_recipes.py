"""The compiler's recipes for a GPU: what each writes without one, and what it computes."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from interpreted import Interpreter

from kernel_smith.proposers.seed import SeedMaker, find_recipe, make_seed

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
EXACT, COARSE = 'input_precision="ieee"', 'input_precision="tf32"'

PRODUCTS = """
import torch

TASK = {"workloads": {"default": {}}, "precision": "PRECISION"}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(96, 48)

    def forward(self, x, y):
        few = torch.bmm(x.view(3, 32, 96), y.transpose(1, 2))
        return torch.relu(self.linear(x)) * 2, few


def get_inputs():
    return [torch.randn(96, 96), torch.randn(3, 64, 96)]
"""
ROWS = """
import torch

TASK = {"workloads": {"default": {}}, "precision": "tf32"}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)


def get_inputs():
    return [torch.randn(3, 3072)]
"""


@pytest.mark.slow
@needs_triton
def test_rows_whole_and_looped_by_one_process(write_task) -> None:
    noted: list[str] = []

    @contextlib.contextmanager
    def use_device() -> Iterator[None]:
        noted.append("taken")
        yield
        noted.append("given back")

    maker = SeedMaker(write_task(ROWS), "cuda", use_device=use_device)
    with contextlib.closing(maker):
        whole = maker.make(find_recipe("whole-rows"))
        looped = maker.make(find_recipe("looped-rows"))
    assert noted == ["taken", "given back"] * 2, "to draw inputs; nothing runs without a GPU"
    assert "R0_BLOCK: tl.constexpr = 4096" in whole.source, "a row of 3072 is held at once"
    assert "for r0_offset in" in looped.source


@pytest.mark.slow
@needs_triton
def test_products_of_the_compilers_own(
    write_task, interpreter: Interpreter, tmp_path: Path
) -> None:
    task = write_task(PRODUCTS.replace("PRECISION", "tf32"))
    native = make_seed(task, "cuda", recipe=find_recipe("native-products"))
    assert native.library_calls == () and native.recipe == "native-products"
    assert native.source.count(COARSE) == 2 and EXACT not in native.source
    assert interpreter.compare(task, native.source, tmp_path) == "2 agree"


@pytest.mark.slow
@needs_triton
def test_products_of_a_strict_task_are_exact(write_task) -> None:
    task = write_task(PRODUCTS.replace("PRECISION", "strict"))
    native = make_seed(task, "cuda", recipe=find_recipe("native-products"))
    assert native.source.count(EXACT) == 2 and COARSE not in native.source
