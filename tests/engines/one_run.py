"""A short evolution run, to be evaluated by any engine."""

from __future__ import annotations

from pathlib import Path

from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.records import Budget, Candidate, Options, Stage, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.run import Run
from kernel_smith.store import Store

EVALUATIONS = 3


def assert_a_run_succeeds(
    engine: Engine, task: Task, source: str, options: Options, folder: Path
) -> None:
    """The mutator improves on `source`, and its budget is spent on programs that mostly work."""
    start = Candidate(source=source, name="start.py")
    config = configure(
        task,
        "cpp",
        proposers=["mutator"],
        rebudget=lambda _: Budget(evaluations=EVALUATIONS),
        starts=[start],
    ).model_copy(update={"options": options, "confirmation": options})
    with (
        Store.open(folder / "runs.sqlite", create=True) as store,
        Run.start(store, task, config) as run,
    ):
        why = run.search(engine)
        state = run.state
    assert why == f"the budget of {EVALUATIONS} evaluations is spent"
    assert state.best is not None
    ended = [known.evaluation for known in state.evaluated.values()]
    assert len(ended) == EVALUATIONS
    assert state.evaluated[start.content_hash].evaluation.stage is Stage.OK
    assert sum(each.ok for each in ended) > EVALUATIONS // 2, [each.message for each in ended]
