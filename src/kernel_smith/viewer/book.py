"""The runs of a store as pages. Folds are kept, and brought up to date with the events since."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from kernel_smith.records import (
    Conversation,
    Evaluation,
    Event,
    Remeasured,
    StepEvaluated,
    StepProposed,
    Task,
    Timing,
)
from kernel_smith.records.prose import render
from kernel_smith.store import History, RunSummary, Store
from kernel_smith.viewer.fold import RunFold, StepTrace
from kernel_smith.viewer.increments import Data, RunChange, as_data, changes
from kernel_smith.viewer.records import (
    PORTION,
    Measured,
    RunCard,
    RunCost,
    RunPage,
    StepPage,
    StepPortion,
)
from kernel_smith.viewer.run_page import run_cost, run_page

_KEPT_FOLDS = 8
_KEPT_STATES = 16  # of pages that browsers may have
TaskWords = Callable[[Task], list[str]]
"""How a command names a task, with the options that make it this task."""
Progress = Callable[[int], None]
"""Called with the number of events that were read."""


def _nobody(count: int) -> None:
    """Is not told."""


@dataclass
class _Kept:
    fold: RunFold = field(default_factory=RunFold)
    lock: threading.Lock = field(default_factory=threading.Lock)


class RunBook:
    """Safe to use from several threads.

    `path`: the store as the user named it, for commands that a page suggests; None: the usual one.
    """

    def __init__(self, store: Store, task_words: TaskWords, path: Path | None = None) -> None:
        self._store = store
        self._task_words = task_words
        self._path = path
        self._folds: OrderedDict[str, _Kept] = OrderedDict()
        self._sent: OrderedDict[tuple[str, int], Data] = OrderedDict()
        """States of pages by their run and its last event."""
        self._costs: dict[str, RunCost] = {}
        self._named: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def summaries(self) -> list[RunSummary]:
        """The store's own list, the newest run first."""
        return self._store.runs()

    def cards(self) -> tuple[RunCard, ...]:
        return tuple(_card(each, self._costs.get(each.id)) for each in self.summaries())

    def page(self, run: str, progress: Progress = _nobody) -> RunPage:
        """Everything about a run but what is long."""
        with self._current(run, progress) as fold:
            state = next(each.state for each in self.summaries() if each.id == run)
            best = self._best_timing(run, fold)
            return run_page(fold, state, best, self._words(run, fold), self._path)

    def changes(self, run: str, after: int | None) -> RunChange | RunPage:
        """Return what is new on a run's page since event `after`; all of it where nobody
        remembers."""
        page = self.page(run)
        now = as_data(page)
        with self._lock:
            before = None if after is None else self._sent.get((run, after))
            self._sent[run, page.sequence] = now
            self._sent.move_to_end((run, page.sequence))
            while len(self._sent) > _KEPT_STATES:
                self._sent.popitem(last=False)
        return page if before is None else changes(before, now)

    def portion(self, run: str, number: int) -> StepPortion:
        """Return the programs, evaluations and prompts of `PORTION` steps."""
        with self._current(run) as fold:
            steps = list(islice(fold.traces.items(), number * PORTION, (number + 1) * PORTION))
        return StepPortion(
            steps={
                number * PORTION + index: self._step(run, step, trace, fold.history)
                for index, (step, trace) in enumerate(steps)
            }
        )

    def _best_timing(self, run: str, fold: RunFold) -> Timing | None:
        best = fold.history.best
        last = fold.traces[best.step].last if best is not None else None
        return _evaluated(self._store.event(run, last)).evaluation.timing if last else None

    def _words(self, run: str, fold: RunFold) -> list[str]:
        if run not in self._named:  # to find them all built-in tasks are read
            self._named[run] = self._task_words(fold.history.task)
        return self._named[run]

    def read_cost(self, run: str) -> None:
        """Have the run's events read, so that its card can say what it cost."""
        with self._current(run):
            pass

    def has_cost(self, run: str) -> bool:
        return run in self._costs

    @contextlib.contextmanager
    def _current(self, run: str, progress: Progress = _nobody) -> Iterator[RunFold]:
        """The fold of a run up to its last event, for one user at a time. Raises `BadInput`."""
        with self._lock:
            kept = self._folds.setdefault(run, _Kept())
            self._folds.move_to_end(run)
            while len(self._folds) > _KEPT_FOLDS:
                self._folds.popitem(last=False)
        with kept.lock:
            for sequence, event in self._store.events(run, after=kept.fold.sequence):
                kept.fold.add(sequence, event)
                progress(sequence)
            self._costs[run] = run_cost(kept.fold)
            yield kept.fold

    def _step(self, run: str, step: int, trace: StepTrace, history: History) -> StepPage:
        proposed = self._store.event(run, trace.proposed)
        assert isinstance(proposed, StepProposed)
        proposal = proposed.proposal
        numbers = [trace.evaluated, *trace.remeasured]
        measured = [
            _measured(_evaluated(self._store.event(run, each)), history)
            for each in numbers
            if each is not None
        ]
        return StepPage(
            step=step,
            name=proposal.candidate.name,
            source=proposal.candidate.source,
            parents=proposal.parents,
            details=proposal.details,
            messages=_messages(proposal.conversation),
            response=proposal.conversation.response if proposal.conversation else "",
            usage=proposal.conversation.usage if proposal.conversation else None,
            measured=tuple(measured),
        )


def _card(summary: RunSummary, cost: RunCost | None) -> RunCard:
    shared = summary.model_dump(include=set(RunCard.model_fields) - {"best", "cost"})
    return RunCard(**shared, best=summary.best, cost=cost)


def _messages(conversation: Conversation | None) -> tuple[tuple[str, str], ...]:
    if conversation is None:
        return ()
    return tuple((message.role, message.content) for message in conversation.messages)


def _evaluated(event: Event) -> StepEvaluated | Remeasured:
    assert isinstance(event, StepEvaluated | Remeasured)
    return event


def _measured(event: StepEvaluated | Remeasured, history: History) -> Measured:
    kind = "step"
    if isinstance(event, Remeasured):
        kind = "full" if event.confirming else "again"
    return Measured.model_validate(
        {
            "kind": kind,
            "at": event.at,
            "words": _in_words(event.evaluation, history),
            "evaluation": _as_data(event.evaluation),
        }
    )


def _in_words(evaluation: Evaluation, history: History) -> str:
    beside = evaluation.beside
    other = history.by_candidate.get(beside.candidate_hash) if beside is not None else None
    return render(evaluation) if other is None else render(evaluation, f"step {other.step}")


def _as_data(evaluation: Evaluation) -> dict[str, object]:
    """What says nothing, and what is the same for all of a run, is left out."""
    return evaluation.model_dump(
        mode="json",
        exclude_defaults=True,
        exclude={"confinement": True, "ceilings": True, "schema_version": True},
    )
