"""What every backend must show before its verdicts can be trusted.

Whoever adds a backend writes one small program per case, all for the task in `backend_task.py`
(`3 * x + y` of two float32 tensors), and has them judged:

    from kernel_smith.testing.backend_suite import check_backend

    for shown in check_backend("mine", {"honest": HONEST, "wrong_values": WRONG, ...}):
        assert shown.passed, shown
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Limits, Options, Task
from kernel_smith.tasks import read_task

_OPTIONS = Options(
    seeds=1, limits=Limits(load_seconds=60, call_seconds=0.7, compile_seconds=60), profile=False
)


class Case(NamedTuple):
    """A kind of program, and how its evaluation may end: a stage, or a stage and a reason."""

    what: str
    ends: frozenset[str]


CASES = {
    # On a busy machine it may be right, and too noisy to be timed.
    "honest": Case("a kernel that is right", frozenset({"ok", "unstable"})),
    "wrong_values": Case("computes 2 * x + y", frozenset({"incorrect/wrong-values"})),
    "last_elements_left_out": Case(
        "writes all but the last three elements of a tensor that it does not clear",
        frozenset({"incorrect/wrong-values", "incorrect/non-finite"}),
    ),
    "does_not_compile": Case(
        "a kernel with an undeclared name", frozenset({"compile-error/compiler-rejected"})
    ),
    "crashes": Case(
        "writes far outside of its memory",
        frozenset({"runtime-error/crashed", "runtime-error/exception"}),
    ),
    "hangs": Case("a kernel that never ends", frozenset({"timeout/call-timeout"})),
    "writes_inputs": Case("returns the right result and clears x", frozenset({"incorrect"})),
    "no_kernel": Case(
        "calls the library alone",
        frozenset({"screened-out/no-kernel-source", "cheating/no-authored-kernel"}),
    ),
    "decoy": Case(
        "calls the library, and a kernel whose result nobody uses",
        frozenset({"cheating/decoy-kernel"}),
    ),
}


class Shown(NamedTuple):
    case: str
    end: str
    passed: bool
    evaluation: Evaluation


def suite_task() -> Task:
    return read_task(Path(__file__).parent / "backend_task.py")


def check_backend(backend: str, programs: Mapping[str, str]) -> list[Shown]:
    """Judge a program of each case on this machine. Raises `BadInput` if some are missing."""
    missing = CASES.keys() - programs.keys()
    if missing:
        raise BadInput(
            f"no program for: {', '.join(sorted(missing))}",
            hint=f"write one for each of: {', '.join(CASES)}",
        )
    with LocalEngine() as engine:
        return [_try(engine, backend, case, programs[case]) for case in CASES]


def _try(engine: LocalEngine, backend: str, case: str, source: str) -> Shown:
    candidate = Candidate(source=source, backend=backend, name=f"{case}.py")
    evaluation = engine.evaluate(suite_task(), candidate, _OPTIONS)
    end = evaluation.stage.value
    if evaluation.reason is not None:
        end = f"{end}/{evaluation.reason.value}"
    passed = not {end, evaluation.stage.value}.isdisjoint(CASES[case].ends)
    return Shown(case, end, passed, evaluation)
