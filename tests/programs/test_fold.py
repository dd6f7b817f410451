"""Programs as somebody sees them who changes what they do for one workload."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.programs.fold import fold

RESULTS = Path(__file__).parents[2] / "results" / "h200" / "triton"
PROGRAM = '''import torch
from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>

extern "C" void both(float* x)
{
    x[0] = 1;
    x[1] = 2;
    x[2] = 3;
}

extern "C" void wide_kernel(float* x)
{
    x[0] = 4;
    x[1] = 5;
    x[2] = 6;
}

extern "C" void odd_kernel(float* x)
{
    x[0] = 7;
    x[1] = 8;
    x[2] = 9;
}
"""

kernels = cpp(SOURCE)


def helper_of_wide(x):
    y = x + 1
    z = y * 2
    w = z - 3
    return w


def run_wide(x):
    x = helper_of_wide(x)
    kernels.both(x)
    kernels.wide_kernel(x)
    return x


def run_odd(x):
    kernels.both(x)
    kernels.odd_kernel(x)
    y = x
    return y


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return run_wide(x) if x.numel() > 9 else run_odd(x)
'''


def test_what_only_other_workloads_need_is_folded() -> None:
    shown = fold(PROGRAM, "odd", ["odd", "wide"])
    for seen in ("odd_kernel", "void both", "def run_odd", "class ModelNew", "#include <cmath>"):
        assert seen in shown.text
    for unseen in ("x[1] = 5", "def helper_of_wide", "def run_wide"):
        assert unseen not in shown.text
    assert "// [folded 1: wide_kernel, 6 lines]" in shown.text
    assert "# [folded 2: helper_of_wide, run_wide, 12 lines]" in shown.text
    assert shown.lines >= 18


@pytest.mark.parametrize("workload", ["odd", "wide"])
def test_nothing_is_lost(workload: str) -> None:
    shown = fold(PROGRAM, workload, ["odd", "wide"])
    assert shown.hidden and shown.unfold(shown.text) == PROGRAM


@pytest.mark.parametrize("task", ["greedy_token", "bias_gradient_tokens"])
def test_of_a_compilers_triton_program_little_is_left_to_read(task: str) -> None:
    source = (RESULTS / task / "kernel.py").read_text()
    workloads = re.findall(r"^def run_(\w+)\(", source, re.MULTILINE)
    for workload in workloads:
        shown = fold(source, workload, workloads)
        assert shown.unfold(shown.text) == source
        assert shown.text.count("\n") < 0.4 * source.count("\n")


def test_a_change_of_what_is_shown_is_one_of_the_program() -> None:
    shown = fold(PROGRAM, "odd", ["odd", "wide"])
    changed = shown.unfold(shown.text.replace("x[2] = 9", "x[2] = 10"))
    assert changed == PROGRAM.replace("x[2] = 9", "x[2] = 10")


def test_who_leaves_out_or_repeats_a_line_that_stands_for_something_gets_it_once_at_most() -> None:
    shown = fold(PROGRAM, "odd", ["odd", "wide"])
    line = next(line for line in shown.text.splitlines() if "folded 2" in line)
    assert "helper_of_wide(x):" not in shown.unfold(shown.text.replace(line, ""))
    twice = shown.unfold(shown.text.replace(line, f"{line}\n\n{line}"))
    assert twice.count("def run_wide") == 1
    names: dict[str, Any] = {}
    for module in ("import torch\n", "from kernel_smith.inline import cpp\n"):
        twice = twice.replace(module, "")
    exec(twice.replace("cpp(SOURCE)", "None").replace("(torch.nn.Module)", ""), names)
    assert names["run_wide"] is not None


@pytest.mark.parametrize(
    "source",
    [
        "this is no Python",
        "class ModelNew:\n    def forward(self, x):\n        return x\n",
        PROGRAM.replace("def run_odd", "def another"),
    ],
)
def test_a_program_without_a_function_for_each_workload_is_shown_as_it_is(source: str) -> None:
    shown = fold(source, "odd", ["odd", "wide"])
    assert shown.text == source and not shown.hidden and shown.unfold(source) == source
