"""What a benchmark looks like while it runs: a live panel, or a line per problem, and how long it
will still take."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table
from rich.text import Text

from kernel_smith.cli.evolution_panel import describe_best
from kernel_smith.cli.output import errors
from kernel_smith.records import Event
from kernel_smith.records.bench import BenchRow

if TYPE_CHECKING:
    from kernel_smith.bench.runner import Job
    from kernel_smith.runs.state import RunState

_LATEST = 6
_MOST_RUNNING = 8


class View:
    """A `Listener`: counts, estimates, and tells."""

    def __init__(self, jobs: Sequence[Job], *, lines: bool) -> None:
        self._all = len(jobs)
        self._lines = lines
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._known = 0
        self._done = 0
        self._solved = 0
        self._running: dict[str, RunState] = {}
        self._latest: list[str] = []

    def hear(self, job: Job, event: Event, state: RunState) -> None:
        with self._lock:
            self._running[f"{job.problem.name} ({job.plan.name})"] = state

    def done(self, row: BenchRow, *, known: bool) -> None:
        with self._lock:
            self._known += known
            self._done += 1
            self._solved += row.status == "correct"
            self._running.pop(f"{row.problem} ({row.arm})", None)
            count = f"[{self._done:{len(str(self._all))}d}/{self._all}]"
            line = f"{count} {row.problem} ({row.arm}): {ending(row)}"
            self._latest = [*self._latest, line][-_LATEST:]
        if self._lines and not known:
            errors.print(f"{line}; {self.left()}")

    def left(self) -> str:
        """Tell how long the rest will take, from how fast it went in this session."""
        spent = time.monotonic() - self._begin
        with self._lock:
            here = self._done - self._known + sum(map(_progress, self._running.values()))
            rest = self._all - self._known - here
        if rest <= 0:
            return "nothing left"
        return f"about {minutes(rest * spent / here)} left" if here > 0 else "no estimate yet"

    def render(self) -> Table:
        table = Table.grid()
        table.add_column(no_wrap=True, overflow="ellipsis")
        left = self.left()
        with self._lock:
            resumed = f" ({self._known} known before)" if self._known else ""
            head = f"{self._done} of {self._all} done{resumed}, {self._solved} solved, {left}"
            table.add_row(Text(head, style="bold"))
            for name, state in list(self._running.items())[:_MOST_RUNNING]:
                steps = f"step {state.last_step + 1}"
                table.add_row(Text(f"  {name}: {steps}, {describe_best(state.best)}"))
            for line in self._latest:
                table.add_row(Text(line, style="dim"))
        return table


@contextlib.contextmanager
def watching(jobs: Sequence[Job], *, quiet: bool) -> Iterator[View]:
    """A panel at a terminal, lines elsewhere, and nothing for those who want quiet."""
    if quiet or not errors.is_terminal:
        yield View(jobs, lines=not quiet)
        return
    view = View(jobs, lines=False)
    with Live(console=errors, refresh_per_second=4, get_renderable=view.render):
        yield view


def ending(row: BenchRow) -> str:
    """Tell how a problem ended, in a few words."""
    if row.status != "correct":
        return f"{row.status}: {' '.join(row.why.split())[:60]}"
    speedups = [f"{each.value:.2f}x {name}" for name, each in row.speedups.items()]
    return ", ".join(speedups) or "correct, not timed"


def minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, math.ceil(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _progress(state: RunState) -> float:
    """Return the share of a run's budget that is spent, as far as it is counted."""
    budget, evaluated = state.config.budget, state.funnel["evaluated"]
    shares = [
        used / limit
        for limit, used in ((budget.evaluations, evaluated), (budget.rounds, state.rounds))
        if limit
    ]
    return min(0.95, max(shares, default=0.0))
