"""The loop: proposals and evaluations side by side, and every outcome written down at once.

What is asked of whom is up to the method (`search/base.py`). Workers answer when they can, and
evaluations run in the engine's lanes; both are bounded separately. The method decides when a worker
begins, from all that is known then. Nobody is asked while as many programs are asked for, waiting
or being evaluated as there are slots and lanes: so parents get as stale as a worker is slow, and no
more.

Everything that happens becomes an event first: appended to the store, then folded into the state.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Any

from kernel_smith.errors import InternalError, UserError
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.proposers.base import NothingToPropose, Worker, WorkerFailed
from kernel_smith.records import (
    ConfirmationBegun,
    Conversation,
    Declined,
    Evaluation,
    Event,
    Label,
    Note,
    Noted,
    Proposal,
    Remeasured,
    RunEnded,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
)
from kernel_smith.runs.budget import has_time_left, reason_to_stop, without_luck
from kernel_smith.runs.confirm import answer, measure_at_length, next_to_confirm
from kernel_smith.runs.counters import Looking
from kernel_smith.runs.remeasure import Remeasuring, options_for_best, remeasured
from kernel_smith.runs.requests import request_of
from kernel_smith.runs.state import RunState, Step
from kernel_smith.search.base import Exhausted, Strategy

_WAIT_SECONDS = 0.2
_KNOWN = "the program is known"
EXHAUSTED = "no proposer has anything new to try"
"""How a run ends that more evaluations would not take further."""

_FRUITLESS = 50  # attempts in a row without a proposal: everyone has run out of ideas


Opener = tuple[str, Callable[[], Proposal]]
"""Who makes a first program, and how."""
Append = Callable[[Event], None]
Audience = Callable[[Event, RunState], None]


@dataclass
class _Asked:
    """Somebody at work."""

    worker: str
    parent: str | None = None
    label: Label = field(default_factory=dict)
    first: bool = False
    """Nobody asked for it: the run begins with it."""


@dataclass
class _Submitted:
    """A candidate in the engine."""

    step: Step
    begin: float
    again: bool = False
    """It was too noisy to say anything about, and is measured a second time."""


class Loop:
    def __init__(
        self,
        state: RunState,
        strategy: Strategy,
        workers: Mapping[str, Worker],
        engine: Evaluator,
        append: Append,
        audience: Audience,
    ) -> None:
        self.state = state
        self._strategy = strategy
        self._workers = workers
        self._gone: dict[str, str] = {}  # workers that will answer nothing more, and why
        self._engine = engine
        self._append = append
        self._audience = audience
        self._rng = random.Random(f"{state.config.seed}:{state.last_step}")
        self._asked: dict[Future[Proposal | Note], _Asked] = {}
        self._evaluating: dict[Future[Evaluation], _Submitted] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self._ready: deque[tuple[Proposal, Label]] = deque()
        self._remeasuring = Remeasuring(state, engine, self._done.put)
        self._looking = Looking(state, engine, self._done.put)
        self._fruitless = 0
        self._exhausted: str | None = None
        self.stopping = False

    def run(self, openers: Sequence[Opener], seconds_before: float = 0.0) -> str:
        """Evolve until the budget, the ideas or somebody's patience end; why it ended.

        `openers` make the first programs, which have no parents. The best is confirmed before the
        run ends; if it had been stopped for what then turns out to be luck, the search goes on.
        """
        begin = time.monotonic() - seconds_before
        threads = ThreadPoolExecutor(self.state.config.proposals_in_flight)
        for name, opener in openers:
            self._await(threads.submit(opener), _Asked(name, first=True))
        problem: str | None = None
        try:
            why = self._search(begin)
            while not self.stopping:
                problem = self._confirm(begin)
                if problem is not None or self._why_stop(time.monotonic() - begin) is not None:
                    break
                why = self._search(begin)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
        if self.stopping:  # one that was interrupted has not ended
            return "interrupted"
        best = answer(self.state)
        why = without_luck(why, self.state, best)
        self.emit(RunEnded(why=why, best=best, unconfirmed=problem or "", at=_now()))
        return why

    def _search(self, begin: float) -> str:
        """Propose and evaluate until there is a reason to stop."""
        while True:
            why = self._why_stop(time.monotonic() - begin)
            if why is not None:
                break
            self._submit_ready()
            # First programs are asked for several at once, since most of them fail, and then only
            # when all that is there has failed.
            if self.state.best is not None or not self._busy:
                self._ask()
            self._collect()
        self._drain()
        return why

    def _confirm(self, begin: float) -> str | None:
        """Measure the best at full length; why that was not possible, if it was not."""
        while not self.stopping:
            in_time = has_time_left(self.state, time.monotonic() - begin)
            name = next_to_confirm(self.state, in_time=in_time)
            if name is None:
                return None
            self.emit(ConfirmationBegun(candidate=name, at=_now()))
            submitted = time.monotonic()
            try:
                shown = measure_at_length(self.state, self._engine, name, lambda: self.stopping)
            except (UserError, InternalError) as error:
                return str(error)
            if shown is not None:
                spent = time.monotonic() - submitted
                event = remeasured(name, shown, spent).model_copy(update={"confirming": True})
                self.emit(event)
        return None

    def emit(self, event: Event) -> Step | None:
        self._append(event)
        step = self.state.apply(event)
        self._strategy.hear(event, self.state)
        self._audience(event, self.state)
        return step

    def _why_no_start(self) -> str:
        evaluations = [step.evaluation for step in self.state.steps.values()]
        if any(e is not None and e.ok and e.untimed for e in evaluations):
            return (
                "kernels for this backend can be checked here, but not timed: it takes their GPU "
                "(--untimed collects correct ones)"
            )
        return "no program to start from was accepted"

    def _why_stop(self, seconds: float) -> str | None:
        if self.stopping:
            return "interrupted"
        if self._gone and not self._there and not self._busy:
            return f"nobody is left to ask: {next(reversed(self._gone.values()))}"
        if self.state.best is None and not self._busy and not self._beginners:
            return self._why_no_start()
        if not self._workers and not self._busy:
            return "nobody was asked for more than the first programs"
        if self._exhausted is not None and not self._busy:
            return self._exhausted
        if self._fruitless >= _FRUITLESS and not self._busy:
            return EXHAUSTED
        return reason_to_stop(self.state, seconds, self._first_to_come())

    def _first_to_come(self) -> set[str]:
        """Who makes the programs still to come that nobody was asked for."""
        coming = {proposal.proposer for proposal, _ in self._ready}
        coming |= {each.step.proposal.proposer for each in self._evaluating.values()}
        return coming - self._workers.keys() | {e.worker for e in self._asked.values() if e.first}

    @property
    def _there(self) -> list[str]:
        """The workers that can be asked."""
        return [name for name in self._workers if name not in self._gone]

    @property
    def _beginners(self) -> list[str]:
        return [name for name in self._there if self._workers[name].begins]

    @property
    def _busy(self) -> bool:
        return bool(self._evaluating or self._asked or self._ready or self._remeasuring)

    @property
    def _lanes_in_use(self) -> int:
        return len(self._evaluating) + len(self._remeasuring.under_way)

    def _ask(self) -> None:
        """Keep workers at work, but not ahead of the lanes."""
        while self._has_room() and self._fruitless < _FRUITLESS and self._rounds_left() > 0:
            free = self._free()
            if not free:
                return
            try:
                ask = self._strategy.next(self.state, free, self._rng)
            except Exhausted as end:
                self._exhausted = str(end)
                return
            if ask is None:
                if not self._busy:
                    self._exhausted = "the method asks for nothing more"
                return
            request = request_of(self.state, ask, self._rng.getrandbits(32))
            future = self._workers[ask.worker].start(request)
            self._await(future, _Asked(ask.worker, ask.parent, ask.label))

    def _has_room(self) -> bool:
        config = self.state.config
        asked = sum(not each.first for each in self._asked.values())
        room = config.evaluations_in_flight + config.proposals_in_flight
        busy = asked + len(self._ready) + self._lanes_in_use
        return asked < config.proposals_in_flight and busy < room

    def _rounds_left(self) -> float:
        """Tell how many answers may still be asked for."""
        limit = self.state.config.budget.rounds
        coming = len(self._asked) + len(self._ready)
        return math.inf if limit is None else limit - self.state.rounds - coming

    def _evaluations_left(self) -> float:
        """Tell how many programs there is room for; a first one that takes its time has its
        place."""
        limit = self.state.config.budget.evaluations
        if limit is None:
            return math.inf
        first = sum(each.first for each in self._asked.values())
        begun = self.state.funnel["evaluated"] + len(self._evaluating)
        return limit - begun - first - len(self._ready)

    def _await(self, future: Future[Any], asked: _Asked) -> None:
        self._asked[future] = asked
        future.add_done_callback(self._done.put)

    def _free(self) -> list[str]:
        """One worker that takes its time must not keep all others waiting, and none is asked for
        more than could be evaluated."""
        places = self.state.config.proposals_in_flight - (len(self._workers) > 1)
        most = min(max(places, 1), self._evaluations_left())
        asked = Counter(asked.worker for asked in self._asked.values())
        able = self._there if self.state.best is not None else self._beginners
        return [name for name in able if asked[name] < most]

    def _submit_ready(self) -> None:
        """Keep the lanes busy: with challengers first, since all that follows builds on them."""
        lanes = self.state.config.evaluations_in_flight
        while self._remeasuring.waiting and self._lanes_in_use < lanes:
            self._remeasuring.submit()
        while self._ready and self._lanes_in_use < lanes:
            proposal, label = self._ready.popleft()
            if self.state.is_known(proposal.candidate):
                parent = proposal.parents[0] if proposal.parents else None
                asked = _Asked(proposal.proposer, parent, label)
                self._drop(asked, _KNOWN, proposal.conversation)
                continue
            step = self.emit(
                StepProposed(
                    step=self.state.last_step + 1, label=label, proposal=proposal, at=_now()
                )
            )
            assert step is not None
            self._submit(step)

    def _submit(self, step: Step, begin: float | None = None) -> None:
        """`begin`: when it was submitted the first time, if this is the second."""
        config = self.state.config
        options = config.options if self.state.best is not None else options_for_best(config)
        future = self._engine.submit(self.state.task, step.proposal.candidate, options)
        started = time.monotonic() if begin is None else begin
        self._evaluating[future] = _Submitted(step, started, again=begin is not None)
        future.add_done_callback(self._done.put)

    def resubmit(self, steps: list[Step]) -> None:
        """Evaluate what an interrupted run had proposed and not finished, and measure those again
        that had taken the lead."""
        for step in steps:
            self._submit(step)
        self._remeasuring.add_open()

    def _collect(self) -> None:
        """Take what is done; wait for something if nothing is."""
        if not self._asked and not self._lanes_in_use:
            return
        try:
            first = self._done.get(timeout=_WAIT_SECONDS)
        except Empty:
            return
        self._take(first)
        while not self._done.empty():
            self._take(self._done.get())

    def _take(self, future: Future[Any]) -> None:
        if future in self._evaluating:
            self._take_evaluation(future)
        elif future in self._remeasuring.under_way:
            self._take_remeasured(future)
        elif future in self._looking.under_way:
            seen = self._looking.take(future)
            if seen is not None:
                self.emit(seen)
        else:
            self._take_proposal(future)

    def _take_proposal(self, future: Future[Proposal | Note]) -> None:
        asked = self._asked.pop(future)
        worker, parent = asked.worker, asked.parent
        try:
            answer = future.result()
        except CancelledError:  # its worker was closed
            self._fruitless += 1
        except NothingToPropose as none:
            self._fruitless += 1
            declined = Declined(
                worker=worker,
                label=asked.label,
                parent=parent,
                why=str(none),
                device_seconds=none.device_seconds,
                at=_now(),
            )
            self.emit(declined)
        except WorkerFailed as failure:
            # What a model was asked and answered is kept, also where nothing came of it.
            if worker not in self._gone or failure.conversation is not None:
                self._drop(asked, failure.what, failure.conversation)
            if failure.final:
                self._gone.setdefault(worker, failure.what)
        except UserError as error:
            self._drop(asked, error.what, None)
        else:
            if isinstance(answer, Note):
                self.emit(Noted(worker=worker, label=asked.label, note=answer, at=_now()))
            elif self.state.is_known(answer.candidate):
                self._drop(asked, _KNOWN, answer.conversation)
            else:
                self._fruitless = 0
                self._ready.append((answer, asked.label))

    def _drop(self, asked: _Asked, why: str, conversation: Conversation | None) -> None:
        self._fruitless += 1
        self.emit(
            StepDropped(
                step=self.state.last_step + 1,
                label=asked.label,
                proposer=asked.worker,
                parent=asked.parent,
                why=why,
                conversation=conversation,
                at=_now(),
            )
        )

    def _take_evaluation(self, future: Future[Evaluation]) -> None:
        submitted = self._evaluating.pop(future)
        evaluation = future.result()
        if evaluation.stage is Stage.UNSTABLE and not submitted.again:
            self._submit(submitted.step, submitted.begin)
            return
        spent = time.monotonic() - submitted.begin
        step = self.emit(
            StepEvaluated(
                step=submitted.step.number, evaluation=evaluation, seconds=spent, at=_now()
            )
        )
        assert step is not None
        self._remeasuring.add_open()
        self._looking.begin()
        name = step.proposal.candidate.content_hash
        if name not in self.state.ranking.challenges:
            self._teach(step)

    def _take_remeasured(self, future: Future[Evaluation]) -> None:
        event = self._remeasuring.take(future)
        was_contender = event.candidate in self.state.ranking.challenges
        self.emit(event)
        if was_contender and isinstance(event, Remeasured):
            for step in self.state.steps_about(event.candidate):
                if step.proposal.candidate.content_hash == event.candidate:
                    self._teach(step)

    def _teach(self, step: Step) -> None:
        """Of a challenger, what was measured again counts, and not what chose it."""
        worker = self._workers.get(step.proposal.proposer)
        if worker is not None:
            known = self.state.evaluated[step.proposal.candidate.content_hash]
            worker.learn(step.proposal, known.evaluation)

    def _drain(self) -> None:
        """Wait for what is being measured, unless somebody is in a hurry."""
        while (self._evaluating or self._remeasuring) and not self.stopping:
            while self._remeasuring.waiting:
                self._remeasuring.submit()
            with contextlib.suppress(Empty):
                self._take(self._done.get(timeout=_WAIT_SECONDS))


def _now() -> datetime:
    return datetime.now(UTC)
