"""Candidates that call PyTorch's `load_inline`, judged for real on the CPU.

All of them have the same texts, so that PyTorch's headers are compiled once, and of these only what
they need, and without optimizing: all together take six times as long.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Options, Reason, Stage, Task

PROGRAM = '''
import torch
from torch.utils.cpp_extension import {imported}

DECLARED = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor shifted_relu(at::Tensor x);
"""
SOURCE = r"""
at::Tensor shifted_relu(at::Tensor x) {{
    auto y = at::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = (in[i] > 0 ? in[i] : 0) + 1;
    return y;
}}
"""

module = {call}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = module.shifted_relu(x.contiguous())
        return {result}
'''
LITERAL = (
    'load_inline(name="shifted", cpp_sources=[DECLARED, SOURCE], functions=["shifted_relu"], '
    "extra_cflags=['-O0'], no_implicit_headers=True)"
)
# The texts are only known when it runs.
MADE_UP = LITERAL.replace("SOURCE]", "SOURCE.strip('x')]").replace("shifted", "other", 1)

Judge = Callable[..., Evaluation]


@pytest.fixture
def judge(engine: LocalEngine, small_task: Task, quick: Options) -> Judge:
    def run(call: str = LITERAL, result: str = "y", imported: str = "load_inline") -> Evaluation:
        source = PROGRAM.format(call=call, result=result, imported=imported)
        candidate = Candidate(backend="cpp", source=source, name="mine.py")
        return engine.evaluate(small_task, candidate, quick)

    return run


@pytest.mark.slow
def test_an_extension_is_compiled_by_the_judge_and_timed(judge: Judge) -> None:
    found = judge()
    assert found.stage is Stage.OK, f"{found.message} {found.log}"
    assert found.timing is not None
    assert "compiler alone" in found.seconds


@pytest.mark.slow
def test_one_whose_text_is_made_up_while_it_runs_shares_the_object(judge: Judge) -> None:
    found = judge(MADE_UP)
    assert found.stage is Stage.OK, f"{found.message} {found.log}"
    judge()
    assert judge(MADE_UP).seconds["compiler alone"] == 0


@pytest.mark.slow
def test_one_whose_result_is_not_used_is_a_decoy(judge: Judge) -> None:
    found = judge(result="torch.relu(x) + 1")
    assert found.reason is Reason.DECOY_KERNEL, f"{found.message} {found.log}"


def test_an_error_is_reported_with_the_candidates_line(judge: Judge) -> None:
    found = judge(LITERAL.replace("DECLARED, ", ""))
    assert found.reason is Reason.COMPILER_REJECTED
    assert found.message.startswith("mine.py:14: "), found.message
    assert {14, 16} & {diagnostic.line for diagnostic in found.diagnostics}


def test_what_cannot_be_compiled_here_is_explained(judge: Judge) -> None:
    linked = judge(LITERAL.replace("functions", "extra_ldflags=['-lcublas'], functions"))
    assert linked.stage is Stage.LOAD_ERROR and "PyTorch's libraries" in linked.message
    files = judge('load(name="shifted", sources=["shifted.cpp"])', imported="load")
    assert files.stage is Stage.LOAD_ERROR and "use load_inline()" in files.message
