"""Our Triton kernel for products in a seed: what it computes, by the interpreter."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from interpreted import Interpreter

from kernel_smith.evaluation.engines.local import LocalEngine
from kernel_smith.proposers.seed import make_seed
from kernel_smith.records import Options, Precision
from kernel_smith.tasks import find_task

PRODUCTS = """
import torch

TASK = {"workloads": {"default": {}}, "precision": "tf32"}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(70, 33)

    def forward(self, x, y):
        few = torch.bmm(x.view(5, 10, 70), y.transpose(1, 2))
        return self.linear(x), few, x.T @ x


def get_inputs():
    return [torch.randn(50, 70), torch.randn(5, 17, 70)]
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_products_with_bias_batch_and_odd_sizes(
    write_task, engine: LocalEngine, quick: Options
) -> None:
    task = write_task(PRODUCTS)
    seed = make_seed(task, "cuda")
    assert seed.library_calls == ()
    assert seed.source.count("@triton.jit") == 1
    assert seed.source.count("PRECISION='tf32'") == 3
    evaluation = engine.evaluate(task, seed.candidate, quick)
    assert evaluation.ok, evaluation.message


TURNED = """
import torch

TASK = {"workloads": {"default": {}}, "precision": "tf32"}


class Model(torch.nn.Module):
    def forward(self, x, y, z, w):
        return x @ y, x.T @ z, torch.bmm(w, w), w[0, :8] @ w[1]


def get_inputs():
    sizes = [(160, 192), (192, 129), (160, 128), (2, 128, 128)]
    return [torch.randn(size) for size in sizes]
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_what_tensor_cores_would_read_one_by_one_is_turned_first(
    write_task, interpreter: Interpreter, tmp_path: Path
) -> None:
    task = write_task(TURNED)
    seed = make_seed(task, "cuda")
    assert seed.source.count("turn[") == 4, "of few rows none"
    assert interpreter.compare(task, seed.source, tmp_path) == "4 agree"
    strict = task.model_copy(update={"precision": Precision.STRICT})
    assert "turn[" not in make_seed(strict, "cuda").source


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_a_product_of_the_suite_has_a_start() -> None:
    seed = make_seed(find_task("dense_matmul"), "cuda")
    assert seed.library_calls == () and seed.kernels == 2
    assert "BLOCK_INNER=64" in seed.source, "of half precision there is more at once"


LONG = """
import torch

TASK = {"workloads": {"default": {}}, "precision": "tf32"}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1100, 18)

    def forward(self, x, y):
        return self.linear(x).relu(), torch.bmm(y, y.mT).exp()


def get_inputs():
    return [torch.randn(40, 1100) * 0.1, torch.randn(2, 35, 1090) * 0.1]
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_long_sums_of_few_programs_are_divided(
    write_task, interpreter: Interpreter, tmp_path: Path
) -> None:
    task = write_task(LONG)
    candidate = make_seed(task, "cuda").authored_candidate
    assert candidate is not None
    assert candidate.source.count("SPLITS=2") == 4, "of both products, and where they are joined"
    assert interpreter.compare(task, candidate.source, tmp_path) == "2 agree"
