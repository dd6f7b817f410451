"""torch.compile says when it compiles, and when it needs the device all the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernel_smith.evaluation.sandbox.inductor_tools import announce_compiling

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's, when imported


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said, from now on; PyTorch is as before afterwards."""
    from torch._dynamo import convert_frame
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    said: list[str] = []

    def compile_graph(*graph: Any, **options: Any) -> str:
        said.append("work")
        AlgorithmSelectorCache.benchmark_choices([], None)
        if graph:
            raise ValueError("no such graph")
        return "graph"

    def benchmark(cls: type, choices: list[str], arguments: None) -> None:
        said.append("trial")

    monkeypatch.setattr(convert_frame, "_compile", compile_graph)
    monkeypatch.setattr(AlgorithmSelectorCache, "benchmark_choices", classmethod(benchmark))
    announce_compiling(said.append)
    assert said == ["compiling", "compiled"]  # to import the compiler
    said.clear()
    return said


ANNOUNCED = ["compiling", "work", "compiled", "trial", "compiling", "compiled"]


def test_compiling_is_announced_and_trials_are_excepted(told: list[str]) -> None:
    from torch._dynamo import convert_frame

    assert convert_frame._compile() == "graph"
    assert told == ANNOUNCED


def test_the_end_is_announced_after_a_failure_as_well(told: list[str]) -> None:
    from torch._dynamo import convert_frame

    with pytest.raises(ValueError, match="no such graph"):
        convert_frame._compile("a graph")
    assert told == ANNOUNCED


def test_torch_compile_goes_through_what_is_announced(told: list[str]) -> None:
    """The name is PyTorch's own affair, and may change."""
    with pytest.raises(Exception, match="no such graph"):
        torch.compile(lambda x: x + 1)(torch.ones(2))
    assert told == ANNOUNCED
