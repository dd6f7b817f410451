"""A new best is measured again: the luckiest of many measurements looks best.

What counts is what the challenger shows now, side by side with the old best. Unless it is faster
there beyond doubt, and by its own figures as well, the old best is measured again, too, if it was
not confirmed: nothing as short says more than that did. Whoever fails now has failed. A measuring
that was too noisy, or took too long, is made a second time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Evaluation, MeasuredInVain, Options, Remeasured, RunConfig
from kernel_smith.runs.state import RunState

_ATTEMPTS = 2
_READERS = {"model"}


@dataclass(frozen=True)
class Challenge:
    """One measuring that is to come: of a challenger, or of the best that it challenges."""

    challenger: str
    champion: str
    of_champion: bool = False
    attempt: int = 1

    @property
    def measured(self) -> str:
        return self.champion if self.of_champion else self.challenger

    def submit(self, state: RunState, engine: Evaluator) -> Future[Evaluation]:
        beside = None if self.of_champion else state.evaluated[self.champion].candidate
        candidate = state.evaluated[self.measured].candidate
        options = state.config.options if self.of_champion else options_for_best(state.config)
        return engine.submit(state.task, candidate, options, beside=beside)

    def after(self, shown: Evaluation, state: RunState) -> tuple[bool, Challenge | None]:
        """Return whether what was shown counts, and the measuring that is to follow."""
        if shown.stage.fleeting and self.attempt < _ATTEMPTS:
            return False, replace(self, attempt=self.attempt + 1)
        old = state.evaluated[self.champion].evaluation
        if self.of_champion:
            return not shown.stage.fleeting and says_more(shown, old), None
        settled = self.champion in state.confirmations or _is_clear(shown, old)
        return True, None if settled else replace(self, of_champion=True, attempt=1)


def options_for_best(config: RunConfig) -> Options:
    """Tell how a program is evaluated that may be the best: with a list of its kernels, what
    they take of the device and how full it is, where somebody takes part who reads that."""
    if not _READERS & config.proposers.keys():
        return config.options
    return config.options.model_copy(update={"profile": True})


@dataclass
class _UnderWay:
    challenge: Challenge
    begin: float


class Remeasuring:
    """The challenges of a run: those that wait for a lane, and those in the engine."""

    def __init__(
        self, state: RunState, engine: Evaluator, on_done: Callable[[Future[Evaluation]], None]
    ) -> None:
        self._state = state
        self._engine = engine
        self._on_done = on_done
        self.waiting: deque[Challenge] = deque()
        self.under_way: dict[Future[Evaluation], _UnderWay] = {}

    def __len__(self) -> int:
        return len(self.waiting) + len(self.under_way)

    def add_open(self) -> None:
        """Measure those again that lead and were not, such as when the run was interrupted."""
        known = {challenge.challenger for challenge in self._all()}
        for challenger, champion in self._state.ranking.challenges.items():
            if challenger not in known:
                self.waiting.append(Challenge(challenger, champion))

    def submit(self) -> None:
        """Have the next one that waits measured."""
        challenge = self.waiting.popleft()
        future = challenge.submit(self._state, self._engine)
        self.under_way[future] = _UnderWay(challenge, time.monotonic())
        future.add_done_callback(self._on_done)

    def take(self, future: Future[Evaluation]) -> Remeasured | MeasuredInVain:
        """Take what was measured, and return the event that it is."""
        done = self.under_way.pop(future)
        shown = future.result()
        counts, following = done.challenge.after(shown, self._state)
        if following is not None:
            self.waiting.appendleft(following)
        name, spent = done.challenge.measured, time.monotonic() - done.begin
        if counts:
            return remeasured(name, shown, spent)
        return MeasuredInVain(candidate=name, seconds=spent, at=datetime.now(UTC))

    def _all(self) -> list[Challenge]:
        return [*self.waiting, *(each.challenge for each in self.under_way.values())]


def remeasured(candidate: str, shown: Evaluation, seconds: float) -> Remeasured:
    return Remeasured(candidate=candidate, evaluation=shown, seconds=seconds, at=datetime.now(UTC))


def _is_clear(shown: Evaluation, old: Evaluation) -> bool:
    gain = shown.beside.gain if shown.beside is not None else None
    if gain is None or shown.timing is None or old.timing is None:
        return False
    return gain.low > 1 and shown.timing.speedup.low > old.timing.speedup.low


def says_more(new: Evaluation, old: Evaluation) -> bool:
    """Is a measurement tighter than an earlier one, or does it contradict it?"""
    if new.timing is None or old.timing is None:
        return True
    later, earlier = new.timing.speedup, old.timing.speedup
    apart = later.low > earlier.high or later.high < earlier.low
    return apart or later.half_width <= earlier.half_width
