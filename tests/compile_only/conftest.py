"""A task with two workloads, and a Triton program for it that uses many kinds of kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel_smith.evaluation.compile_only import compile_only, find_target
from kernel_smith.records import Candidate, CompileReport, Limits, Task, Workload

TASK = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, 64))

    def forward(self, x):
        return torch.softmax(x, -1) @ self.weight


def get_inputs(rows, width):
    return [torch.randn(rows, width)]


def get_init_inputs(width):
    return [width]
"""

MODEL = """
class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, 64))

    def forward(self, x):
        return launch(x, self.weight)
"""

HEADER = """\
import torch
import triton
import triton.language as tl

"""

Compile = Callable[..., CompileReport]


@pytest.fixture(scope="session")
def gate_task() -> Task:
    # The large one would cost 2 GiB and seconds of drawing, were its inputs really drawn.
    workloads = (
        Workload(name="small", params={"rows": 64, "width": 256}),
        Workload(name="large", params={"rows": 1 << 19, "width": 1024}),
    )
    return Task(name="gate_task", source=TASK, workloads=workloads)


@pytest.fixture(scope="session")
def compile_source(gate_task: Task) -> Compile:
    """`compile_source(kernels, arch="sm_90")`: the text needs kernels and `launch(x, weight)`."""

    def run(kernels: str, arch: str = "sm_90", limits: Limits | None = None) -> CompileReport:
        candidate = Candidate(backend="triton", source=HEADER + kernels + MODEL, name="mine.py")
        chosen = {} if limits is None else {"limits": limits}
        return compile_only(gate_task, candidate, find_target(arch), **chosen)

    return run
