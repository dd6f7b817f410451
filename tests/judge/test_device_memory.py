"""Judges that share a GPU's memory: who finds none waits, and the others hear of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_smith.errors import InternalError, MissingPrerequisite
from kernel_smith.evaluation.judge import judge as judge_module
from kernel_smith.evaluation.judge.judge import Judge
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.device import DeviceFull
from kernel_smith.evaluation.judge.processes.child import Interrupted
from kernel_smith.evaluation.judge.processes.pool import ProcessPool
from kernel_smith.records import Candidate, Environment, Evaluation, Options, Reason, Stage, Task

EVALUATED = Evaluation(
    task="add",
    task_hash="0" * 64,
    candidate_hash="1" * 64,
    backend="triton",
    stage=Stage.INCORRECT,
    reason=Reason.WRONG_VALUES,
    environment=Environment(**dict.fromkeys(Environment.model_fields, "x")),
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)
HELD_BY_OTHERS = 5 << 30
REFUSED = EVALUATED.model_copy(update={"message": "it takes too much"})


class Scripted:
    """A pipeline that ends as the script says."""

    in_doubt = False

    def __init__(self, ends: list[Evaluation | Exception]) -> None:
        self._ends = ends

    def run(self) -> Evaluation:
        end = self._ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    def give_up_for_memory(self, message: str) -> Evaluation:
        return EVALUATED.model_copy(update={"message": message})

    def close(self) -> None: ...


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it waited, without waiting."""
    slept: list[float] = []
    calm = SimpleNamespace(felt=contextlib.nullcontext, is_felt=lambda: False)
    monkeypatch.setattr(device_state, "need_of_memory", lambda: calm)
    busy = SimpleNamespace(of_others=lambda: HELD_BY_OTHERS)
    monkeypatch.setattr(device_state, "claims", lambda: busy)
    monkeypatch.setattr(device_state, "memory", lambda: (3 << 30, 24 << 30))
    monkeypatch.setattr(judge_module.time, "sleep", slept.append)
    return slept


@pytest.fixture
def evaluate(
    monkeypatch: pytest.MonkeyPatch, write_task: Callable[..., Task], waits: list[float]
) -> Callable[[list[Evaluation | Exception]], Evaluation]:
    task = write_task(
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x + 1\n"
        "def get_inputs():\n    return [torch.randn(4)]\n"
    )
    candidate = Candidate(source="", backend="triton", name="candidate.py")

    def run(ends: list[Evaluation | Exception]) -> Evaluation:
        judge = Judge(cast(ProcessPool, SimpleNamespace()))
        monkeypatch.setattr(judge, "_pipeline", lambda *_: Scripted(ends))
        return judge.evaluate(task, candidate, Options(), lambda _: None)

    return run


Evaluate = Callable[[list[Evaluation | Exception]], Evaluation]


def full(**details: Any) -> DeviceFull:
    return DeviceFull("out of memory", **{"by_candidate": False} | details)


def test_it_waits_until_others_have_left_memory(evaluate: Evaluate, waits: list[float]) -> None:
    assert evaluate([full(), full(), full(), EVALUATED]) == EVALUATED
    assert waits == sorted(waits)
    assert len(waits) == 3


def test_it_does_not_wait_for_ever(evaluate: Evaluate, waits: list[float]) -> None:
    with pytest.raises(MissingPrerequisite, match="memory does not suffice") as caught:
        evaluate([full() for _ in range(20)])
    assert "3.0 of 24.0 GiB are free" in caught.value.what
    assert "end other programs" in str(caught.value.hint)
    assert 60 < sum(waits) < 300


def test_where_nobody_else_evaluates_there_is_nobody_to_wait_for(
    evaluate: Evaluate, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for a judge that is idle and keeps tasks ready, which hears of the need in a second."""
    alone = SimpleNamespace(of_others=lambda: 0)
    monkeypatch.setattr(device_state, "claims", lambda: alone)
    with pytest.raises(MissingPrerequisite, match=r"3\.0 of 24\.0 GiB are free"):
        evaluate([full() for _ in range(20)])
    assert waits == [1.0]


def test_a_candidate_that_takes_it_all_is_told_at_once(
    evaluate: Evaluate, waits: list[float]
) -> None:
    assert evaluate([full(by_candidate=True)]).message == "out of memory"
    assert waits == []


def test_a_candidate_that_gets_too_little_again_is_told(
    evaluate: Evaluate, waits: list[float]
) -> None:
    assert evaluate([full(verdict=REFUSED), full(verdict=REFUSED)]) == REFUSED
    assert len(waits) == 1


def test_a_trusted_process_may_find_none_either(evaluate: Evaluate, waits: list[float]) -> None:
    gone = Interrupted("a trusted process failed: CUDA error: out of memory")
    assert evaluate([gone, EVALUATED]) == EVALUATED
    assert len(waits) == 1


def test_processes_that_die_are_not_a_matter_of_memory(
    evaluate: Evaluate, waits: list[float]
) -> None:
    with pytest.raises(InternalError, match="in every attempt"):
        evaluate([Interrupted("gone") for _ in range(20)])
    assert waits == []


NEEDY = """
from kernel_smith.evaluation.judge.platform.device_lock import Need

mine, hers, yours = Need(), Need(), Need()
felt = [yours.is_felt()]
with mine.felt():
    felt.append(yours.is_felt())
    with hers.felt():
        felt.append(yours.is_felt())
    felt.append(yours.is_felt())
felt.append(yours.is_felt())
print(felt)
"""


def test_others_hear_of_a_need(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", NEEDY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[False, True, True, True, False]"
