"""A candidate timed side by side with another: what is compared, and whose failure is whose."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_smith.evaluation.engines import EvaluationCache, LocalEngine
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import Candidate, Options, Reason, Stage, Task

pytestmark = pytest.mark.timing

# The gates call it four times; timing calls it five times at least, on however slow a machine.
CRASHES_WHEN_TIMED = """
import ctypes

CALLS = 0
"""
IN_FORWARD = """
        global CALLS
        CALLS += 1
        if CALLS > 6:
            ctypes.string_at(0)
"""


@pytest.fixture
def crashing_when_timed(honest_source: str) -> str:
    """Right in every check, and gone in the midst of timing."""
    head, found, tail = honest_source.partition("        y = torch.empty_like(x)\n")
    assert found
    return CRASHES_WHEN_TIMED + head + IN_FORWARD + found + tail


def reworded(source: str) -> Candidate:
    """The same program, with another text."""
    return Candidate(source=source.replace("x[i] > 0 ? x[i] : 0", "x[i] < 0 ? 0 : x[i]"))


def test_the_gain_over_another_candidate_is_told_per_workload_and_overall(
    engine: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    candidate, parent = Candidate(source=honest_source), reworded(honest_source)
    evaluation = engine.evaluate(small_task, candidate, quick, beside=parent)
    assert evaluation.ok
    beside = evaluation.beside
    assert beside is not None and beside.gain is not None
    assert beside.candidate_hash == parent.content_hash
    assert beside.gain.low < beside.gain.value < beside.gain.high
    assert [each.workload for each in beside.workloads] == [w.name for w in small_task.workloads]
    assert evaluation.timing is not None
    assert [each.baseline for each in evaluation.timing.speedups] == ["eager"]


def test_a_rival_that_fails_a_gate_is_named_and_the_candidate_is_judged_all_the_same(
    engine: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    broken = Candidate(source=honest_source.replace("++i", "++"))
    evaluation = engine.evaluate(small_task, Candidate(source=honest_source), quick, beside=broken)
    assert evaluation.ok
    assert evaluation.beside is not None and evaluation.beside.gain is None
    assert evaluation.beside.reason is Reason.COMPILER_REJECTED


def test_a_rival_that_dies_when_it_is_timed_is_not_the_candidates_fault(
    engine: LocalEngine,
    small_task: Task,
    quick: Options,
    honest_source: str,
    crashing_when_timed: str,
) -> None:
    unscreened = quick.model_copy(update={"screen": False})
    evaluation = engine.evaluate(
        small_task,
        Candidate(source=honest_source),
        unscreened,
        beside=Candidate(source=crashing_when_timed),
    )
    assert evaluation.ok
    assert evaluation.beside is not None and evaluation.beside.gain is None
    assert evaluation.beside.reason is Reason.CRASHED


def test_a_wrong_candidate_is_wrong_beside_whomever(
    engine: LocalEngine, small_task: Task, quick: Options, honest_source: str, wrong_source: str
) -> None:
    evaluation = engine.evaluate(
        small_task, Candidate(source=wrong_source), quick, beside=Candidate(source=honest_source)
    )
    assert evaluation.stage is Stage.INCORRECT
    assert evaluation.beside is None


def test_the_cache_knows_what_a_candidate_was_timed_beside(
    small_task: Task, quick: Options, honest_source: str, tmp_path: Path
) -> None:
    cache = EvaluationCache(tmp_path)
    candidate, parent = Candidate(source=honest_source), reworded(honest_source)
    evaluation = made_up(small_task, candidate, 2.0)
    cache.put(small_task, candidate, quick, evaluation, parent)
    assert cache.get(small_task, candidate, quick, parent) == evaluation
    assert cache.get(small_task, candidate, quick) is None
    assert cache.get(small_task, candidate, quick, candidate) is None
