"""Results of every type that a reference can return are admitted, compared and verified, whatever
the size of the workload: for many of them torch lacks this operation or that."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.admission import examine
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.pool import Pool, make_pool
from kernel_smith.evaluation.judge.inputs.reference import AUTHOR, InputSet, Reference
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing import verifier
from kernel_smith.evaluation.judge.timing.verifier import TimedVerifier
from kernel_smith.evaluation.judge.values import pieces
from kernel_smith.tasks import read_task

CALLS = 2

KINDS = {
    "complex": "torch.fft.fft(x)",
    "complex_whole": "torch.fft.fft(x, dim=0)",
    "complex_number": "torch.fft.fft(x).sum()",
    "complex_double": "torch.fft.fft(x.double())",
    "complex_half": "torch.fft.fft(x).to(torch.complex32)",
    "conjugated": "torch.fft.fft(x).conj()",
    "negated": "torch.fft.fft(x).conj().imag",
    "float8_e4m3fn": "(x * 3).to(torch.float8_e4m3fn)",
    "float8_e5m2": "(x * 3).to(torch.float8_e5m2)",
    "float8_scales": "x.abs().to(torch.float8_e8m0fnu)",
    "float8_whole": "(x - x.mean(0)).to(torch.float8_e4m3fn)",
    "uint16": "(x.abs() * 9).to(torch.uint16)",
    "uint64": "(x.abs() * 9).to(torch.uint64)",
    "number": "float(x.sum())",
    "several": "[int((x > 0).sum()), torch.fft.fft(x), x.to(torch.float8_e5m2), bool(x[0, 0])]",
}

SMALL = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)
LARGE = Budget(kept=0, at_once=32 << 10, free=1 << 30)
BUDGETS = {"small": SMALL, "large": LARGE, "scarce": LARGE._replace(free=0)}

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


@pytest.fixture(scope="module", params=KINDS)
def reference(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Reference:
    text = f"""
import torch

TASK = {{"variants": ["strided", "ties"]}}

class Model(torch.nn.Module):
    def forward(self, x):
        return {KINDS[request.param]}

def get_inputs():
    return [torch.randn(64, 32)]
"""
    path = tmp_path_factory.mktemp("task") / "task_under_test.py"
    path.write_text(text, encoding="utf-8")
    return Reference(read_task(path))


@pytest.fixture(scope="module", params=BUDGETS.values(), ids=BUDGETS)
def pool(reference: Reference, request: pytest.FixtureRequest) -> Iterator[Pool]:
    """Of results that are looked at in a few pieces."""
    (workload,) = reference.task.workloads
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_PIECE", {"cpu": 600})
        look = look_at(reference, workload, request.param)
        assert examine(reference, workload, request.param, look).found == []
        yield make_pool(reference, workload, 2, request.param, look)


def answer(pool: Pool, inputs: InputSet) -> list[torch.Tensor]:
    """As the judge reads it from memory."""
    found = pool.reference.call(pool.workload, inputs).tensors
    return [
        t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format) for t in found
    ]


def spoil(result: list[torch.Tensor]) -> None:
    """In a place of its own: half of the first tensor that is more than a number."""
    tensor = max(result, key=torch.Tensor.numel).view(-1)
    half = max(1, tensor.numel() // 2)
    tensor.view(torch.uint8)[: half * tensor.itemsize] = 0x11


def test_the_references_answer_is_right_and_a_spoilt_one_is_not(pool: Pool) -> None:
    for check in pool.hand_out_checks():
        inputs = check.draw()
        right, wrong = answer(pool, inputs), answer(pool, inputs)
        assert check.compare(right, inputs).reason is None
        assert check.agrees(right, inputs)
        if check.label == AUTHOR:
            spoil(wrong)
            assert check.compare(wrong, inputs).reason is not None
            assert not check.agrees(wrong, inputs)


class Results:
    """A participant whose calls have been run."""

    def __init__(self, calls: list[list[torch.Tensor]]) -> None:
        self._calls = calls

    def outputs(self, call: int) -> list[torch.Tensor]:
        return self._calls[call]

    def output_rows(self, calls: int) -> list[torch.Tensor]:
        return [
            torch.stack(same).view(calls, -1) for same in zip(*self._calls[:calls], strict=True)
        ]

    def inputs_unchanged(self, call: int) -> bool:
        return True

    def parameters_unchanged(self) -> bool:
        return True

    def release(self) -> None: ...


def test_timed_calls_are_verified(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "check_descriptions", lambda batch, described: None)
    sets = list(islice(pool.timing_sets(), CALLS))
    batch = cast(Any, SimpleNamespace(calls=CALLS))

    def verify(results: list[list[torch.Tensor]]) -> None:
        eager = cast(Participant, Results([answer(pool, inputs) for inputs in sets]))
        candidate = cast(Participant, Results(results))
        TimedVerifier(candidate, eager, pool, {}, lambda inputs: None)(sets, batch)

    verify([answer(pool, inputs) for inputs in sets])
    wrong = [answer(pool, inputs) for inputs in sets]
    spoil(wrong[1])
    with pytest.raises(Rejected):
        verify(wrong)
