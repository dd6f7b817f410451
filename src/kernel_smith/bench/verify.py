"""Judges the winners of a result again: are they still right, and still as fast as it says?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from kernel_smith.bench.folder import winner_path
from kernel_smith.bench.scores import EAGER
from kernel_smith.bench.suites import Problem, Selection, find_problems
from kernel_smith.errors import BadInput, InternalError, UserError, reason_of
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Candidate, Evaluation, Interval, Record, Stage, Task
from kernel_smith.records.bench import Arm, BenchResult, BenchRow

Verdict = Literal["stands", "slower", "wrong", "undecided", "missing"]
"""Stands: right, and not beyond doubt slower than the result says. Undecided: too noisy, or the
evaluator failed. Missing: its program or its problem is not there any more, or not the same."""
Submit = Callable[[], Future[Evaluation]]
_ONCE_MORE = ("slower", "undecided")  # a busy machine may have done it


class Verified(Record):
    arm: str
    problem: str
    precision: str
    verdict: Verdict
    claimed: Interval | None = Field(description="speedup over eager, as the result says")
    found: Interval | None = None
    why: str = ""


def verify(
    result: BenchResult,
    folder: Path,
    suites: Sequence[str],
    engine: Evaluator,
    on_done: Callable[[Verified], None] = lambda verified: None,
) -> list[Verified]:
    """Return every winner, measured at full length against the baselines of the result."""
    arms = {arm.name: arm for arm in result.arms}
    problems = _problems(result, suites)
    done: list[Verified] = []
    under_way: list[tuple[BenchRow, Submit, Future[Evaluation]]] = []
    for row in _winners(result):
        try:
            task, candidate = _material(row, arms[row.arm], folder, problems)
        except BadInput as error:
            done.append(_verified(row, "missing", why=error.what))
            on_done(done[-1])
            continue
        submit: Submit = partial(engine.submit, task, candidate, arms[row.arm].confirmation)
        under_way.append((row, submit, submit()))
    for row, ask_again, future in under_way:
        found = _judged(row, future)
        if found.verdict in _ONCE_MORE:
            found = _judged(row, ask_again())
        done.append(found)
        on_done(found)
    return done


def _winners(result: BenchResult) -> Iterator[BenchRow]:
    return (row for row in result.rows if row.status == "correct")


def _problems(result: BenchResult, suites: Sequence[str]) -> dict[tuple[str, str], Problem]:
    precisions = dict.fromkeys(row.precision.value for row in result.rows)
    words = list(suites or result.stamp.suites)
    found = find_problems(words, Selection(), list(precisions))
    return {(problem.name, problem.precision.value): problem for problem in found}


def _material(
    row: BenchRow, arm: Arm, folder: Path, problems: dict[tuple[str, str], Problem]
) -> tuple[Task, Candidate]:
    problem = problems.get(row.key)
    hint = "name the suites that the result was made with: --suite PATH"
    if problem is None or problem.task is None:
        raise BadInput(f"{row.problem}: not in the suites", hint=hint)
    if problem.task.content_hash != row.task_hash:
        raise BadInput(f"{row.problem}: the problem has changed since", hint=hint)
    path = winner_path(folder, row)
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read ({reason_of(error)})", hint=hint) from None
    candidate = Candidate(backend=arm.backend, source=source, name=path.name)
    if candidate.content_hash != row.winner:
        raise BadInput(f"{path}: not the program that the result speaks of", hint=hint)
    return problem.task, candidate


def _judged(row: BenchRow, future: Future[Evaluation]) -> Verified:
    try:
        evaluation = future.result()
    except (UserError, InternalError) as error:
        return _verified(row, "undecided", why=str(error))
    if evaluation.stage is Stage.UNSTABLE:
        return _verified(row, "undecided", evaluation, "too noisy")
    if not evaluation.ok:
        why = f"{evaluation.stage.value}/{evaluation.reason}: {evaluation.message}"
        return _verified(row, "wrong", evaluation, why)
    claimed, found = row.speedups.get(EAGER), speedup(evaluation)
    is_slower = claimed is not None and found is not None and found.high < claimed.low
    return _verified(row, "slower" if is_slower else "stands", evaluation)


def speedup(evaluation: Evaluation) -> Interval | None:
    """Over eager, if it was timed."""
    timing = evaluation.timing
    named = {each.baseline: each.speedup for each in timing.speedups} if timing else {}
    return named.get(EAGER)


def _verified(
    row: BenchRow, verdict: Verdict, evaluation: Evaluation | None = None, why: str = ""
) -> Verified:
    return Verified(
        arm=row.arm,
        problem=row.problem,
        precision=row.precision.value,
        verdict=verdict,
        claimed=row.speedups.get(EAGER),
        found=None if evaluation is None else speedup(evaluation),
        why=why,
    )
