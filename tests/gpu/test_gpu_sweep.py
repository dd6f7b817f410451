"""A sweep on a GPU: Triton's numbers, and variants that fail in a GPU's own ways."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.proposers.tuner.apply import apply
from kernel_smith.proposers.tuner.find import find
from kernel_smith.records import Candidate, Options, Reason, Sampling, Swept
from kernel_smith.tasks import read_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

OPTIONS = Options(seeds=2, sampling=Sampling(max_seconds=1.0), profile=False)
SECONDS = 120.0

TASK = """
import torch

TASK = {"workloads": {"short": {"rows": 512}, "long": {"rows": 4096}}}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs(rows):
    return [torch.randn(rows, 4096)]
"""

PROGRAM = """
import torch
import triton
import triton.language as tl


@triton.jit
def shifted_relu(x, y, n, XBLOCK: tl.constexpr):
    at = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.maximum(value, 0.0) + 1, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        shifted_relu[(triton.cdiv(n, 1024),)](x, y, n, XBLOCK=1024, num_warps=4)
        return y
"""


def swept(tmp_path: Path, variants: dict[str, str]) -> dict[str, Swept]:
    path = tmp_path / "shifted_relu.py"
    path.write_text(TASK)
    parent = Candidate(backend="triton", source=PROGRAM)
    with LocalEngine() as engine:
        task = read_task(path)
        before = engine.evaluate(task, parent, OPTIONS)
        assert before.ok, f"{before.message} {before.notes} {before.log}"
        sweep = engine.sweep(task, parent, list(variants.values()), OPTIONS, SECONDS)
        assert sweep.problem == ""
        assert engine.evaluate(task, parent, OPTIONS, fresh=True).ok, "as before"
    return dict(zip(variants, sweep.swept, strict=True))


def test_blocks_are_told_apart_and_faults_are_named(tmp_path: Path) -> None:
    space = find(PROGRAM)
    blocks = {str(size): apply(space, {"XBLOCK": size}) for size in (64, 512, 2048)}
    faults = {
        "illegal access": PROGRAM.replace("tl.store(y +", "tl.store(y + 100000000000 +"),
        "hang": PROGRAM.replace(
            "    tl.store(",
            "    while tl.load(x, volatile=True) < 1e30:\n        pass\n    tl.store(",
        ),
        "wrong": PROGRAM.replace("0.0) + 1", "0.0) + 2"),
        "no Triton": PROGRAM.replace("tl.maximum", "tl.no_such_thing"),
    }
    found = swept(tmp_path, blocks | faults)
    gains = {name: found[name].gain for name in blocks}
    assert all(gain is not None for gain in gains.values()), found
    assert gains["64"].value < gains["512"].value, "many small programs take longer"
    assert found["illegal access"].reason in {Reason.EXCEPTION, Reason.CRASHED}
    assert found["hang"].reason is Reason.CALL_TIMEOUT
    assert found["wrong"].reason is Reason.WRONG_VALUES
    assert found["no Triton"].reason is not None
