"""An accusation that a busy machine may have caused is looked at again, in another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kernel_smith.evaluation.judge.judge import Judge
from kernel_smith.evaluation.judge.processes.pool import ProcessPool
from kernel_smith.evaluation.judge.rejection import Rejected, Suspected
from kernel_smith.evaluation.judge.timing import on_host
from kernel_smith.records import Candidate, Evaluation, Options, Reason, Stage, Task


@pytest.fixture(scope="module")
def judge(processes: ProcessPool) -> Iterator[Judge]:
    judge = Judge(processes)
    yield judge
    judge.close()


@pytest.fixture
def evaluate(
    judge: Judge,
    monkeypatch: pytest.MonkeyPatch,
    small_task: Task,
    honest_source: str,
    quick: Options,
) -> Callable[[Rejected, int], Evaluation]:
    """An honest candidate, which is accused so many times."""

    def run(accusation: Rejected, times: int) -> Evaluation:
        accusations = iter([accusation] * times)

        def check(*windows: Any) -> None:
            for accused in accusations:
                raise accused

        # No other doubts than these, however busy the machine is.
        monkeypatch.setattr(on_host, "check_processor_use", check)
        monkeypatch.setattr(on_host, "check_physics", lambda *found: None)
        candidate = Candidate(source=honest_source, name="honest.py")
        evaluation = judge.evaluate(small_task, candidate, quick, lambda _: None)
        assert not list(accusations)
        return evaluation

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param(1, Stage.OK, marks=pytest.mark.sweep),
        (2, Stage.OK),
        (3, Stage.CHEATING),
    ],
)
def test_nobody_is_accused_for_what_is_not_seen_again(
    evaluate: Callable[[Rejected, int], Evaluation], times: int, expected: Stage
) -> None:
    evaluation = evaluate(Suspected(Reason.BACKGROUND_WORK, "was busy"), times)
    assert evaluation.stage is expected
    assert [note for note in evaluation.notes if "measured again" in note] == [
        "measured again: background-work: was busy"
    ] * min(times, 2)


def test_what_no_machine_can_cause_is_not_looked_at_again(
    evaluate: Callable[[Rejected, int], Evaluation],
) -> None:
    assert evaluate(Rejected(Reason.EXTRA_CORES, "three cores"), 1).stage is Stage.CHEATING
