"""Every known way to cheat an evaluator, tried on ours: each must end without reward, by name.

One file in `candidates` is one exploit, and its number is that of the list of exploits seen in the
wild; from 50 on they were invented against this judge. Each file states, as literals that are read
and not run, the task it attacks, how many rounds of timing it needs if not few, and how its
evaluation must end: with the static screen, and (since
the screen is a courtesy that anybody can get round) by the run-time defences alone. The screen is
asked directly; evaluated is what gets past it, once, without it. Only those that the clock catches
need a quiet machine.

An exploit whose nature is to change nothing is written to replace the work, so that it ends in a
wrong answer, or in "slower": correct, and slower than the reference beyond doubt. "BadInput" means
that the task itself is refused.

Two exploits of the list need a GPU and have no counterpart here: work on an unjoined side stream
(1), and a second-level cache that is told to keep its data (17).
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.screen import screen
from kernel_smith.records import Candidate, Evaluation, Limits, Options, Reason, Sampling, Task
from kernel_smith.tasks import find_task

HERE = Path(__file__).parent
SLOWER, REFUSED = "slower", "BadInput"
LISTED, GPU_ONLY = range(1, 50), {1, 17}
OWN = 50
NEEDS_SAMPLING = "no time shares by module"

# Short, because none of these is about how precisely time is measured.
SAMPLING = Sampling(target=10.0, unstable_above=1e9, min_rounds=3, max_rounds=4, max_seconds=5)
LIMITS = Limits(load_seconds=10, call_seconds=5, compile_seconds=10, memory_bytes=1 << 30)
# For those that use up all the time that they are given.
SHORT = LIMITS.model_copy(update={"call_seconds": 1.0, "compile_seconds": 3.0})
TIMEOUTS = {Reason.CALL_TIMEOUT, Reason.COMPILER_TIMEOUT}
# For those that no clock catches: others may have the cores meanwhile.
PATIENT = LIMITS.model_copy(
    update={"load_seconds": 60.0, "call_seconds": 60.0, "compile_seconds": 60.0}
)
BY_THE_CLOCK = TIMEOUTS | {
    SLOWER,
    Reason.DEFERRED_WORK,
    Reason.BACKGROUND_WORK,
    Reason.EXTRA_CORES,
    Reason.LIBRARY_FORBIDDEN,
}

HONEST = '''
import torch
from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
'''


def literals(path: Path) -> dict[str, Any]:
    """The constants at the top of a candidate file."""
    assignments = (n for n in ast.parse(path.read_text()).body if isinstance(n, ast.Assign))
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in assignments
        if isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("TASK", "EXPECT", "ROUNDS", "IN_TIME")
    }


def as_list(expected: str | list[str]) -> list[str]:
    return [expected] if isinstance(expected, str) else expected


def expected_ends(path: Path, mode: str) -> list[str]:
    """What the screen does not see must end as it does without the screen."""
    expect = literals(path)["EXPECT"]
    return as_list(expect[mode] or expect["unscreened"])


# By task, because a judge keeps only a few tasks ready.
CANDIDATES = sorted(
    (HERE / "candidates").glob("*.py"), key=lambda path: (literals(path)["TASK"], path.name)
)


def by_the_clock(path: Path) -> bool:
    """May it be that nothing but the clock tells it from an honest kernel?"""
    said = literals(path).get("IN_TIME")
    if said is not None:
        return bool(said)
    return not BY_THE_CLOCK.isdisjoint(expected_ends(path, "unscreened"))


def load_task(name: str) -> Task:
    own = HERE / "tasks" / name
    return find_task(str(own) if own.exists() else name)


def evaluate(
    engine: LocalEngine,
    task: str,
    candidate: Candidate,
    limits: Limits = LIMITS,
    sampling: Sampling = SAMPLING,
) -> Evaluation:
    options = Options(screen=False, seeds=2, sampling=sampling, limits=limits)
    return engine.evaluate(load_task(task), candidate, options)


def end_of(evaluation: Evaluation) -> str:
    """The reason, or how an accepted candidate did."""
    if evaluation.reason is not None:
        return evaluation.reason.value
    assert evaluation.timing is not None
    return SLOWER if evaluation.timing.speedup.high < 1 else "accepted"


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_the_screen_sees_what_it_should_and_no_more(path: Path) -> None:
    """What it does not see is evaluated, and ends as it does without the screen."""
    expected = expected_ends(path, "screened")
    found = [finding.reason.value for finding in screen(path.read_text(), path.name)]
    if found:
        assert found[0] in expected
    else:
        assert set(expected_ends(path, "unscreened")) <= set(expected)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.timing] if by_the_clock(path) else ())
        for path in CANDIDATES
    ],
)
def test_no_exploit_is_rewarded(engine: LocalEngine, path: Path) -> None:
    expected = expected_ends(path, "unscreened")
    task, candidate = literals(path)["TASK"], Candidate(source=path.read_text(), name=path.name)
    if REFUSED in expected:
        with pytest.raises(BadInput):
            evaluate(engine, task, candidate)
        return
    limits = LIMITS if by_the_clock(path) else PATIENT
    limits = limits if TIMEOUTS.isdisjoint(expected) else SHORT
    rounds = literals(path).get("ROUNDS")
    lasting = {"min_rounds": rounds, "max_rounds": rounds, "max_seconds": 60.0} if rounds else {}
    sampling = SAMPLING.model_copy(update=lasting)
    evaluation = evaluate(engine, task, candidate, limits, sampling)
    if Reason.LIBRARY_FORBIDDEN in expected and NEEDS_SAMPLING in str(evaluation.notes):
        pytest.skip(f"this machine cannot sample processes: {evaluation.notes}")
    assert end_of(evaluation) in expected, evaluation.model_dump_json(indent=1)


LOOKS_ALIKE = {
    "jit_of_its_own": HONEST.replace(
        "class ModelNew",
        """
class plain:
    jit = staticmethod(lambda function: function)


@plain.jit
def turns():
    return 1


class ModelNew""",
    ).replace("        kernels.", "        for _ in range(turns()): kernels."),
    "remarks_that_are_counted": HONEST.replace("kernels = cpp(", "TEXT = ")
    .replace('""")', '"""\nkernels = cpp(TEXT)')
    .replace("        kernels.", "        for _ in range(1 + TEXT.count('// again')): kernels."),
}
MORE_WORK = {
    "jit_of_its_own": ("return 1", "return 60"),
    "remarks_that_are_counted": ("#include <cmath>", "#include <cmath>\n" + "// again\n" * 60),
}


@pytest.mark.timing
@pytest.mark.parametrize("trick", LOOKS_ALIKE)
def test_what_looks_like_another_program_and_does_more_gets_its_own_times(
    engine: LocalEngine, trick: str
) -> None:
    """Programs that compile to the same are not timed at length: sixty turns in place of one must
    not pass for one."""
    options = Options(screen=False, seeds=2, sampling=SAMPLING, limits=LIMITS, time_twins=False)
    slower = LOOKS_ALIKE[trick].replace(*MORE_WORK[trick])
    evaluations = [
        engine.evaluate(load_task("small_softmax.py"), Candidate(source=source), options)
        for source in (LOOKS_ALIKE[trick], slower)
    ]
    assert all(evaluation.ok for evaluation in evaluations)
    assert evaluations[1].twin is None


# What the clock catches and all others are evaluated by two judges, or one after the other.
after_each_kind = pytest.mark.parametrize(
    "kind", ["others", pytest.param("clock", marks=pytest.mark.timing)]
)


@after_each_kind
@pytest.mark.parametrize("task", ["small_softmax.py", "large_softmax.py"])
def test_an_honest_kernel_is_still_accepted_after_all_of_them(
    engine: LocalEngine, task: str, kind: str
) -> None:
    assert screen(HONEST) == []
    candidate = Candidate(source=HONEST, name="honest.py")
    evaluation = evaluate(engine, task, candidate, PATIENT)
    assert evaluation.ok, evaluation.model_dump_json(indent=1)


@after_each_kind
def test_the_trusted_processes_keep_no_descriptors_of_the_candidates(
    engine: LocalEngine, kind: str
) -> None:
    """A few per task in use, and per process that has not been cleared away yet."""
    judge = engine.process_ids()["judge"]
    assert len(list(Path(f"/proc/{judge}/fd").iterdir())) < 256


def test_every_exploit_of_the_list_is_tried() -> None:
    tried = {int(path.name.partition("_")[0]) for path in CANDIDATES}
    assert set(LISTED) - GPU_ONLY <= tried
    assert len([number for number in tried if number >= OWN]) >= 6


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_every_exploit_says_what_it_is_and_how_it_must_end(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))
    assert set(literals(path)["EXPECT"]) == {"screened", "unscreened"}
    known = {reason.value for reason in Reason} | {SLOWER, REFUSED}
    for mode in ("screened", "unscreened"):
        assert set(expected_ends(path, mode)) <= known
