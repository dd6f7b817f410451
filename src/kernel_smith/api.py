"""The library's front door: `import kernel_smith as ks; run = ks.optimize("row_softmax")`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import open_engine
from kernel_smith.proposers.model import read_settings
from kernel_smith.records import Budget, Candidate, Evaluation, Event, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.run import Run
from kernel_smith.store import Store, default_path
from kernel_smith.tasks import find_task, with_precision


@dataclass(frozen=True)
class Optimized:
    """What a run found."""

    run: str
    candidate: Candidate
    evaluation: Evaluation
    why_ended: str
    confirmed: bool
    """Was it shown to be faster than eager and torch.compile, by a measuring at full length that
    did not choose it?"""

    @property
    def speedup(self) -> float:
        """Against eager PyTorch: the lower end of the interval."""
        assert self.evaluation.timing is not None
        return self.evaluation.timing.speedup.low


def optimize(
    task: str | Task,
    *,
    backend: str = "cpp",
    precision: str | None = None,
    starts: Sequence[str] = (),
    preset: str | None = None,
    method: str | None = None,
    budget: Budget | None = None,
    models: Path | None = None,
    lanes: int = 1,
    engine: str | None = None,
    store: Path | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Optimized:
    """Evolve a faster kernel for a task, from the texts of `starts` or the task's own.

    `preset` and `method` are those of `kernel-smith optimize`.
    `precision` overrides the task's, as `--precision` does.
    `engine` is the address of whoever evaluates, as for `--engine`; None: this machine, with as
    many candidates at once as `lanes`. Every step is kept in `store`. `models` is a TOML file that
    names models to ask, which makes `model` the usual preset. Raises `BadInput` if no program to
    start from is accepted.
    """
    found = with_precision(find_task(task) if isinstance(task, str) else task, precision)
    given = [Candidate(backend=backend, source=text, name="start.py") for text in starts]
    config = configure(
        found,
        backend,
        preset=preset,
        method=method,
        models=None if models is None else read_settings(models).model_dump(mode="json"),
        rebudget=None if budget is None else lambda _: budget,
        lanes=lanes,
        starts=given or None,
    )
    with (
        Store.open(store or default_path(), create=True) as book,
        Run.start(book, found, config) as run,
        open_engine(engine, lanes) as judges,
    ):
        why = run.search(judges, lambda event, _: on_event(event))
        best = run.state.best
        if best is None:
            raise BadInput(
                f"run {run.state.run}: {why}",
                hint=f"kernel-smith runs show {run.state.run} says what was tried",
            )
        return Optimized(
            run.state.run, best.candidate, best.evaluation, why, run.state.is_confirmed
        )
