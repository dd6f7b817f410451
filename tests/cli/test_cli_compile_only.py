"""`kernel-smith evaluate --compile-only`: the report as exit code, text and JSON."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kernel_smith.records import CompileReport, Reason, Task
from kernel_smith.records.schema_files import schema_texts

Cli = Callable[..., Any]

CANDIDATE = """
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.maximum(v, 0.0) + 1, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
        return y
"""

COMMAND = ("evaluate", "relu.py", "mine.py", "--backend", "triton", "--compile-only")


@pytest.fixture
def files(tmp_path: Path, small_task: Task) -> Path:
    (tmp_path / "relu.py").write_text(small_task.source)
    (tmp_path / "mine.py").write_text(CANDIDATE)
    return tmp_path


@pytest.mark.slow
def test_a_candidate_that_compiles_ends_with_zero(cli: Cli, files: Path) -> None:
    done = cli(*COMMAND, "--arch", "sm_80")
    assert done.code == 0, done.out + done.err
    assert "relu <- mine.py" in done.out
    assert "ok: compiles for sm_80: relu_kernel. Nothing was run." in done.out
    assert "relu_kernel (line 8) B=256" in done.out
    assert "of 163 KiB, 4 warps" in done.out
    assert "1 launch (default)" in done.out
    assert "... compiling mine.py for sm_80" in done.err


@pytest.mark.slow
def test_a_candidate_without_kernels_ends_with_one_and_a_record(cli: Cli, files: Path) -> None:
    eager = CANDIDATE.partition("        y = ")[0] + "        return torch.relu(x) + 1\n"
    (files / "mine.py").write_text(eager)
    done = cli(*COMMAND, "--json", "--quiet")
    assert done.code == 1, done.out + done.err
    assert done.err == ""
    jsonschema.validate(done.json, json.loads(schema_texts()["compile_report.json"]))
    report = CompileReport.model_validate(done.json)
    assert report.reason is Reason.NO_AUTHORED_KERNEL
    assert report.target == "sm_90"


def test_a_triton_that_cannot_compile_for_metax_is_named(cli: Cli, files: Path) -> None:
    done = cli(*COMMAND, "--arch", "xcore1000")
    done.complains(3, "this Triton has no backend for MACA", "the Triton that MetaX provides")


def test_mistakes_come_with_their_remedy(
    cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli(*COMMAND, "--arch", "sm_1").complains(2, "sm_1", "sm_90", "gfx942", "xcore1000")
    wrong_backend = ("evaluate", "relu.py", "mine.py", "--compile-only")
    cli(*wrong_backend).complains(2, "cpp", "name another --backend")
    without = ("evaluate", "relu.py", "mine.py", "--arch", "sm_90")
    cli(*without).complains(2, "--arch sm_90", "--compile-only")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    cli(*COMMAND).complains(3, "Triton is not installed", "pip install")
