"""An evaluation that does not end in its time: it is given up, and its lane goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernel_smith.errors import BadInput, InternalError, TookTooLong
from kernel_smith.evaluation.engines import pool as pool_module
from kernel_smith.evaluation.engines.pool import LocalPool
from kernel_smith.records import Candidate, Options, Task

LONG = 120.0


class Engine:
    """A stand-in that hangs on programs called so, until it is abandoned."""

    made: int = 0

    def __init__(self, cache: object) -> None:
        Engine.made += 1
        self._abandoned = threading.Event()

    def evaluate(
        self, task: Task, candidate: Candidate, options: Options, beside: Candidate | None
    ) -> Any:
        if candidate.source in ("hang", "refuse late"):
            assert self._abandoned.wait(LONG)
        if candidate.source == "refuse late":
            raise BadInput("a bad task", hint="mend it")
        if self._abandoned.is_set():
            raise InternalError("the question was abandoned")
        return candidate.source

    def abandon(self) -> None:
        self._abandoned.set()

    def close(self) -> None: ...


def program(source: str) -> Candidate:
    return Candidate(source=source)


def test_who_hangs_is_given_up_and_the_lane_begins_anew(
    monkeypatch: pytest.MonkeyPatch, small_task: Task
) -> None:
    monkeypatch.setattr(pool_module, "LocalEngine", Engine)
    Engine.made = 0
    with LocalPool(1, patience=0.2) as pool:
        hanging = pool.submit(small_task, program("hang"))
        after = pool.submit(small_task, program("next"))
        with pytest.raises(TookTooLong, match=r"did not end within 0.2 s"):
            hanging.result(LONG)
        assert after.result(LONG) == "next"  # type: ignore[comparison-overlap]
    assert Engine.made == 2


def test_an_answer_that_comes_late_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, small_task: Task
) -> None:
    """It was on its way when the engine was given up."""
    monkeypatch.setattr(pool_module, "LocalEngine", Engine)
    with LocalPool(1, patience=0.2) as pool:
        late = pool.submit(small_task, program("refuse late"))
        after = pool.submit(small_task, program("next"))
        with pytest.raises(BadInput, match="a bad task"):
            late.result(LONG)
        assert after.result(LONG) == "next"  # type: ignore[comparison-overlap]


def test_another_defect_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch, small_task: Task) -> None:
    def broken(self: Engine, *_: object, **__: object) -> Any:
        raise InternalError("the judge died")

    monkeypatch.setattr(pool_module, "LocalEngine", Engine)
    monkeypatch.setattr(Engine, "evaluate", broken)
    with LocalPool(1, patience=LONG) as pool, pytest.raises(InternalError, match="the judge died"):
        pool.submit(small_task, program("any")).result(LONG)


@pytest.mark.slow
@pytest.mark.sweep  # `tests/cli/test_cli_tasks.py` waits for one, too
def test_a_reference_that_never_returns_does_not_hold_the_judge(
    write_task: Callable[..., Task], honest_source: str
) -> None:
    """Its judge is ready, so that the time it is given is for the reference."""
    task = write_task(
        "import time\nimport torch\n\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        time.sleep(600)\n        return x\n\n"
        "def get_inputs():\n    return [torch.randn(4)]\n"
    )
    with LocalPool(1, patience=3) as pool:
        pool._engines[0].process_ids()
        with pytest.raises(TookTooLong):
            pool.submit(task, program(honest_source)).result(LONG)
