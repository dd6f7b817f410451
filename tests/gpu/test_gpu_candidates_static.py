"""What can be said without a GPU about the Triton candidates in this folder, and the CUDA ones in
`cuda`.

`honest` holds kernels that a judge must accept, named `<task>__<idea>.py`; `exploits` holds cheats
that it must not reward. Their tasks are in `tasks` or in the GPU suite. An exploit begins with a
header of comments:

    # task: the name of its task
    # exploit: what it does, in one sentence
    # rows: the numbers of the list of exploits that it stands for
    # expect: stage/reason, ...: every end that its evaluation may have

The screen is a courtesy that anybody can get round, so at least one of the ends is none of the
screen's. `ok/slower` is an end, too: correct, and beyond doubt slower than the reference. Such
cheats work eightfold, and would look fast to a clock that they fooled alone.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.screen import screen
from kernel_smith.records import Candidate, Options, Reason, Stage, Task
from kernel_smith.records.verdict import MEANINGS
from kernel_smith.tasks import builtin_tasks, read_task

HERE = Path(__file__).parent
HONEST = sorted((HERE / "honest").glob("*.py"))
EXPLOITS = sorted((HERE / "exploits").glob("*.py"))
CUDA_HONEST = sorted((HERE / "cuda" / "honest").glob("*.py"))
CUDA_EXPLOITS = sorted((HERE / "cuda" / "exploits").glob("*.py"))
OWN_TASKS = {path.stem: read_task(path) for path in sorted((HERE / "tasks").glob("*.py"))}
TASKS = {task.name: task for task in builtin_tasks("gpu")} | OWN_TASKS

KEYS = ["task", "exploit", "rows", "expect"]
SLOWER = "ok/slower"
ENDS = {f"{meaning.stage}/{reason}" for reason, meaning in MEANINGS.items()} | {SLOWER}
LISTED = range(1, 50)
NEED_A_GPU = {1, 14, 17, 22}

# Of different kinds, and quick in the interpreter.
INTERPRETED = [
    "row_softmax__row_in_registers",
    "rotary_embedding_llm__queries_and_keys_at_once",
    "weight_gradient_matmul__split_with_atomics",
]


def header(path: Path) -> dict[str, str]:
    """The comments at the top of an exploit, by name."""
    lines = path.read_text().splitlines()[: len(KEYS)]
    return dict(line.removeprefix("# ").split(": ", 1) for line in lines)


def named(path: Path) -> str:
    return f"{path.parent.parent.name}-{path.stem}"


def items(text: str) -> list[str]:
    return text.split(", ")


def task_of(path: Path) -> Task:
    return TASKS[path.stem.partition("__")[0]]


@pytest.mark.parametrize("path", EXPLOITS + CUDA_EXPLOITS, ids=named)
def test_every_exploit_says_what_it_attacks_and_how_it_may_end(path: Path) -> None:
    assert list(header(path)) == KEYS
    assert header(path)["task"] in OWN_TASKS
    assert {int(row) for row in items(header(path)["rows"])} <= set(LISTED)
    ends = items(header(path)["expect"])
    assert set(ends) <= ENDS
    assert len(ends) == len(set(ends))
    assert any(not end.startswith(Stage.SCREENED_OUT) for end in ends)


@pytest.mark.parametrize("path", EXPLOITS + CUDA_EXPLOITS, ids=named)
def test_the_screen_ends_an_exploit_only_as_its_header_says(path: Path) -> None:
    ends = items(header(path)["expect"])
    found = screen(path.read_text(), path.name)
    assert all(finding.reason is not Reason.SYNTAX_ERROR for finding in found)
    announced = [end for end in ends if end.startswith(Stage.SCREENED_OUT)]
    assert announced == [f"{Stage.SCREENED_OUT}/{finding.reason}" for finding in found[:1]]


@pytest.mark.parametrize("path", HONEST + CUDA_HONEST, ids=named)
def test_an_honest_candidate_passes_the_screen(path: Path) -> None:
    assert task_of(path)
    assert ast.get_docstring(ast.parse(path.read_text()))
    assert screen(path.read_text(), path.name) == []


@pytest.mark.parametrize("name", INTERPRETED)
def test_an_honest_candidate_is_right_in_the_interpreter(engine: LocalEngine, name: str) -> None:
    path = HERE / "honest" / f"{name}.py"
    candidate = Candidate(backend="triton", source=path.read_text(), name=path.name)
    evaluation = engine.evaluate(task_of(path), candidate, Options(seeds=1, interpret=True))
    assert evaluation.stage is Stage.OK, f"{evaluation.message} {evaluation.log}"


def test_the_collections_are_broad() -> None:
    assert len({task_of(path).name for path in HONEST}) >= 26
    assert len({task_of(path).family for path in HONEST}) >= 15
    assert len({task_of(path).family for path in CUDA_HONEST}) >= 12
    assert len(CUDA_HONEST) >= 20
    assert len(EXPLOITS) >= 30
    assert len(CUDA_EXPLOITS) >= 15
    assert {header(path)["task"] for path in EXPLOITS} == set(OWN_TASKS)
    rows = {int(row) for path in EXPLOITS for row in items(header(path)["rows"])}
    assert rows >= NEED_A_GPU
