"""A profiler looks at the best where nothing better is found: its counters say what holds it up.

Only where the user wants it, since a profiler cannot look into the sandbox: what it runs was
accepted by the judge, and is run without one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime

from kernel_smith.errors import InternalError, UserError
from kernel_smith.evaluation.engines.base import Evaluator, Profiler
from kernel_smith.records import Counted, Evaluation, NsightKernel
from kernel_smith.runs.state import RunState

_PLATEAU = 10  # evaluations without a new best

Counters = Future[tuple[NsightKernel, ...]]


@dataclass(frozen=True)
class _Look:
    candidate: str
    begin: float


class Looking:
    """The profiler's looks at the bests of a run: one at each."""

    def __init__(
        self, state: RunState, engine: Evaluator, on_done: Callable[[Counters], None]
    ) -> None:
        self._state = state
        self._engine = engine if state.config.counters and isinstance(engine, Profiler) else None
        self._on_done = on_done
        self._looked_at: set[str] = set()
        self.under_way: dict[Counters, _Look] = {}

    def begin(self) -> None:
        """Have the best looked at, if that is due."""
        state = self._state
        if self._engine is None or state.since_best < _PLATEAU or state.best is None:
            return
        name, evaluation = state.best.candidate.content_hash, state.best.evaluation
        if name in self._looked_at or evaluation.nsight or evaluation.timing is None:
            return
        self._looked_at.add(name)
        future = self._engine.counters(state.task, state.best.candidate, _longest(evaluation))
        self.under_way[future] = _Look(name, time.monotonic())
        future.add_done_callback(self._on_done)

    def take(self, future: Counters) -> Counted | None:
        """Take what was seen, as an event; None where the profiler could not."""
        look = self.under_way.pop(future)
        try:
            seen = future.result()
        except (UserError, InternalError):
            self._engine = None  # it is not installed, or may not look
            return None
        spent = time.monotonic() - look.begin
        return Counted(candidate=look.candidate, nsight=seen, seconds=spent, at=datetime.now(UTC))


def _longest(evaluation: Evaluation) -> str:
    """Return the workload that takes longest."""
    assert evaluation.timing is not None
    return max(evaluation.timing.workloads, key=lambda timed: timed.candidate.p50).workload
