"""What all runs of a benchmark have taken together, and when that is enough."""

from __future__ import annotations

import threading
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
        self._lock = threading.Lock()
        self.why: str | None = None

    @property
    def total(self) -> Cost:
        with self._lock:
            return sum(self._costs.values(), Cost())

    def note(self, state: RunState) -> None:
        """Take in how far a run has come."""
        with self._lock:
            self._costs[state.run] = cost_of(state)
            if self.why is not None:
                return
            self.why = self._reason(sum(self._costs.values(), Cost()))
        if self.why is not None:
            self._on_spent(self.why)

    def _reason(self, total: Cost) -> str | None:
        limits = (
            (self._limit.evaluations, total.evaluations, "evaluations"),
            (self._limit.device_seconds, total.device_seconds, "seconds of evaluation"),
            (self._limit.tokens, total.tokens, "tokens"),
            (self._limit.dollars, total.dollars, "dollars"),
        )
        for limit, used, unit in limits:
            if limit is not None and used >= limit:
                return f"the {limit:g} {unit} for all problems are spent"
        return None
