"""Batch norm in training: its statistics go on being gathered by the seed's own kernels."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from interpreted import Interpreter

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.proposers.seed import Seed, make_seed
from kernel_smith.records import Options, Stage, Task

# The compiler warns about its own affairs.
pytestmark = pytest.mark.filterwarnings("ignore")

GATHERING = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(6, momentum=0.3)

    def forward(self, x):
        return torch.sigmoid(self.norm(x))


def get_inputs():
    return [torch.randn(5, 6, 7, 9)]
"""


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def build(task: Task) -> Seed:
    from kernel_smith.proposers.seed.inside.build import build_seed

    return build_seed(task, "cpu", ["default"], lambda what: None, compare=False)


def test_a_batch_norm_in_training_becomes_a_seed_that_gathers_what_it_does(
    compiler: None, write_task, one_thread: None, engine: LocalEngine, quick: Options
) -> None:
    """Once for each call, though the seed was made with one thread and runs with several."""
    task = write_task(GATHERING)
    seed = build(task)
    assert seed.library_calls == ()
    assert "#pragma omp single" in seed.source
    reference: dict[str, type] = {}
    exec(task.source, reference)
    program: dict[str, type] = {}
    exec(seed.source, program)
    theirs, ours = reference["Model"](), program["ModelNew"]()
    torch.set_num_threads(4)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(5, 6, 7, 9) * 3 + 1
            assert torch.allclose(theirs(x), ours(x), atol=1e-5)
    gathered = dict(theirs.named_buffers())
    for name, buffer in ours.named_buffers():
        assert torch.allclose(buffer, gathered[name]), name
    far = torch.randn(5, 6, 7, 9) + 1000
    right = torch.sigmoid(torch.batch_norm(far.double(), *[None] * 4, True, 0.3, 1e-5, False))
    assert (ours(far) - right).abs().max() < 2e-6, "as exact as sums in double"
    evaluation = engine.evaluate(task, seed.candidate, quick)
    assert evaluation.stage is Stage.OK, evaluation.message


def test_an_argument_that_gathers_statistics_is_no_buffer(compiler: None, write_task) -> None:
    text = GATHERING.replace("self.norm(x)", "torch.batch_norm(\n        x, None, None, {}\n    )")
    text = text.format("running_mean, running_var, True, 0.1, 1e-5, False")
    text = text.replace("(self, x)", "(self, x, running_mean, running_var)")
    text = text.replace("9)]", "9), torch.zeros(6), torch.ones(6)]")
    with pytest.raises(BadInput, match="changes `running_mean` in place"):
        build(write_task(text))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_a_batch_norm_in_training_becomes_a_seed_for_a_gpu(
    write_task, interpreter: Interpreter, tmp_path: Path
) -> None:
    """Also where there is none: nothing has to be copied to it."""
    task = write_task(GATHERING.replace("self.norm(x))", "self.norm(x)),"))
    seed = make_seed(task, "cuda")
    assert seed.library_calls == ()
    assert "self.norm.running_var" in seed.source
    assert interpreter.compare(task, seed.source, tmp_path) == "1 agree"
