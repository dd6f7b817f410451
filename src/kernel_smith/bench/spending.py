"""What all runs of a benchmark have taken together, and when that is enough."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from kernel_smith.bench.rows import cost_of
from kernel_smith.records import Budget
from kernel_smith.records.bench import Cost
from kernel_smith.runs.state import RunState


class Spending:
    """Counts the cost of every run, those of earlier sessions included. Safe to use from threads.

    `on_spent` is called, once and with the reason, when the budget of the whole is spent.
    """

    def __init__(self, limit: Budget, on_spent: Callable[[str], None]) -> None:
        self._limit = limit
        self._on_spent = on_spent
        self._costs: dict[str, Cost] = {}
        self._total: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.why: str | None = None

    def note(self, state: RunState) -> None:
        """Take in how far a run has come. Called at every event, so only what is new is added."""
        cost = cost_of(state)
        with self._lock:
            self._total.update(cost.model_dump())
            self._total.subtract(self._costs.get(state.run, Cost()).model_dump())
            self._costs[state.run] = cost
            if self.why is not None:
                return
            self.why = self._reason()
        if self.why is not None:
            self._on_spent(self.why)

    def _reason(self) -> str | None:
        limits = (
            (self._limit.evaluations, "evaluations", "evaluations"),
            (self._limit.device_seconds, "device_seconds", "seconds of evaluation"),
            (self._limit.tokens, "tokens", "tokens"),
            (self._limit.dollars, "dollars", "dollars"),
        )
        for limit, name, unit in limits:
            if limit is not None and self._total[name] >= limit:
                return f"the {limit:g} {unit} for all problems are spent"
        return None
