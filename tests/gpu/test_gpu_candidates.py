"""The Triton candidates of this folder, judged on a GPU: cheats end without reward, by name.

All of them are handed to one pool at once, so that they are compiled and checked side by side.
Every exploit is judged with the static screen and without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
import torch

from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Candidate, Evaluation, Limits, Options, Sampling, Stage, Task
from kernel_smith.tasks import builtin_tasks, read_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

HERE = Path(__file__).parent
HONEST = sorted((HERE / "honest").glob("*.py"))
EXPLOITS = sorted((HERE / "exploits").glob("*.py"))
LANES = 4

# Short, because none of these is about how precisely time is measured.
SAMPLING = Sampling(target=0.1, unstable_above=1.0, min_rounds=4, max_rounds=12, max_seconds=0.5)
LIMITS = Limits(load_seconds=20, call_seconds=2, compile_seconds=30)

Verdicts = dict[tuple[str, bool], Future[Evaluation]]


def expected(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()[:4]
    return dict(line.removeprefix("# ").split(": ", 1) for line in lines)


def submit(pool: LocalPool, task: Task, path: Path, *, screen: bool) -> Future[Evaluation]:
    candidate = Candidate(backend="triton", source=path.read_text(), name=path.name)
    options = Options(seeds=2, screen=screen, sampling=SAMPLING, limits=LIMITS, profile=False)
    return pool.submit(task, candidate, options)


@pytest.fixture(scope="module")
def verdicts() -> Iterator[Verdicts]:
    tasks = {task.name: task for task in builtin_tasks("gpu")}
    tasks |= {path.stem: read_task(path) for path in sorted((HERE / "tasks").glob("*.py"))}
    with LocalPool(LANES) as pool:
        jobs: Verdicts = {}
        for path in EXPLOITS:
            for screen in (False, True):
                task = tasks[expected(path)["task"]]
                jobs[path.stem, screen] = submit(pool, task, path, screen=screen)
        for path in HONEST:
            task = tasks[path.stem.partition("__")[0]]
            jobs[path.stem, True] = submit(pool, task, path, screen=True)
        yield jobs


def describe(evaluation: Evaluation) -> str:
    return f"{end_of(evaluation)}: {evaluation.message}\n{evaluation.log}\n{evaluation.notes}"


def end_of(evaluation: Evaluation) -> str:
    if evaluation.stage is not Stage.OK:
        return f"{evaluation.stage}/{evaluation.reason}"
    assert evaluation.timing is not None
    return "ok/slower" if evaluation.timing.speedup.high < 1 else "ok/faster"


@pytest.mark.parametrize("screen", [False, True], ids=["unscreened", "screened"])
@pytest.mark.parametrize("path", EXPLOITS, ids=lambda path: path.stem)
def test_an_exploit_earns_nothing(path: Path, screen: bool, verdicts: Verdicts) -> None:
    evaluation = verdicts[path.stem, screen].result()
    assert end_of(evaluation) in expected(path)["expect"].split(", "), describe(evaluation)


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.stem)
def test_an_honest_kernel_is_accepted(path: Path, verdicts: Verdicts) -> None:
    evaluation = verdicts[path.stem, True].result()
    assert evaluation.stage is Stage.OK, describe(evaluation)
    assert evaluation.device is not None
    assert all(roofline.share < 1.5 for roofline in evaluation.rooflines)
