"""One sweep: many variants of a program, timed against it and against each other.

    compile side by side -> load -> one answer each -> rounds, and whoever lies behind drops out

The variants are a proposer's, made of a program that was accepted by changing its numbers. All the
same they are confined like any candidate, and what a sweep shows is a hint: whatever is proposed on
its strength is judged as anything else is. So one set of inputs decides whether a variant is right,
and work that is hidden from the clock is not looked for.
"""

from __future__ import annotations

import ast
import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Generic, TypeVar

from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.judge.correctness import answers_right
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.journal import Progress
from kernel_smith.evaluation.judge.platform.base import Platform
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.participant import ParticipantT
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.sweeping.cohort import PARENT, Cohort
from kernel_smith.evaluation.judge.sweeping.race import Race
from kernel_smith.evaluation.judge.timing.host_clock import batch_length
from kernel_smith.records import Candidate, Interval, Options, Reason, Sweep, Swept, Workload

_LONGEST_CALL = 5.0  # seconds: on a GPU the first one compiles kernels
_COMPILED_BY, _CHECKED_BY = 0.5, 0.75  # of the time; what is not is left out
_LATEST = 1.5  # of the time: by then everybody has been timed once, or is left out
_GLANCES = 3  # at single calls, before the race
_FAR_BEHIND = 0.67  # of the parent's speed: who is seen to be slower need not be in the race
_LAPS, _ROUNDS = 6, 3  # who is behind is seen after each lap, of so many rounds of all workloads
_FEW = 2  # between whom the judge decides
_LAPS_FOR_ALL = 10  # where the gain of each is wanted

_random = random.Random()
_T = TypeVar("_T")


class _TimeIsUp(Exception):
    """What was measured so far has to do."""


class Sweeping(Generic[ParticipantT]):
    """`variants`: the sources of other programs like `parent`. `seconds`: to be done in.

    `everybody`: the gain of each is wanted, as closely as sampling's target, and not the fastest.
    """

    def __init__(
        self,
        platform: Platform[ParticipantT],
        bench: Bench[ParticipantT],
        parent: Candidate,
        variants: Sequence[str],
        options: Options,
        seconds: float,
        progress: Progress,
        *,
        everybody: bool = False,
    ) -> None:
        self._platform = platform
        self._bench = bench
        self._begun, self._seconds = time.monotonic(), seconds
        self._say = progress
        self._everybody, self._target = everybody, options.sampling.target
        self._sources = {str(number): source for number, source in enumerate(variants)}
        call = min(options.limits.call_seconds, _LONGEST_CALL)
        limits = options.limits.model_copy(update={"call_seconds": call})
        backend, tree = find_backend(parent.backend), ast.parse(parent.source)
        self._compiler = platform.compiler(parent, backend, tree, limits)
        self._cohort = Cohort(platform, bench, parent, self._sources, self._compiler, limits)
        self._per_call: dict[str, float] = {}  # the parent's seconds, by workload
        weights = {workload.name: workload.weight for workload in bench.task.workloads}
        self._race, self._glances = Race(PARENT, weights), Race(PARENT, weights)

    def run(self) -> Sweep:
        """What became of each variant. Raises `Interrupted` where a trusted process failed."""
        problem = ""
        try:
            claims, largest = self._platform.claims(), self._bench.largest()
            with self._once_free(claims.holding(largest.lane, lambda held: None)):
                self._compile()
                for workload in self._bench.task.workloads:
                    self._find_right_ones(workload)
                self._leave_slow_ones_out()
                with self._once_free(self._platform.alone()):
                    self._hold_race()
        except _TimeIsUp:
            pass
        except (ChildFailed, Rejected) as failure:
            problem = f"the program itself failed: {failure}"
        finally:
            self._cohort.end()
            self._platform.retire([], self._compiler)
            self._bench.reveal()
        swept = tuple(self._swept(name) for name in self._sources)
        return Sweep(swept=swept, seconds=time.monotonic() - self._begun, problem=problem)

    def _swept(self, name: str) -> Swept:
        """Who did not race may only be seen to be slower: the parent was looked at earlier."""
        reason = self._cohort.reasons.get(name)
        if reason is not None:
            return Swept(reason=reason)
        gain, seen = self._race.gain(name), self._glances.gain(name)
        slower = seen if gain is None and seen and seen.high < 1 else None
        shown = {w.name: self._shown_on(w.name, name) for w in self._bench.task.workloads}
        by_workload = {workload: found for workload, found in shown.items() if found is not None}
        return Swept(gain=gain or slower, by_workload=by_workload)

    def _shown_on(self, workload: str, name: str) -> Interval | None:
        """In the race, or else at a glance: what is slow on the whole may be fast somewhere."""
        return self._race.gain_on(workload, name) or self._glances.gain_on(workload, name)

    def _moment(self, share: float) -> float:
        """When so much of the time is over."""
        return self._begun + share * self._seconds

    @contextlib.contextmanager
    def _once_free(self, turn: AbstractContextManager[_T]) -> Iterator[_T]:
        """Enter what others may be using. To wait for them takes nothing of the time."""
        asked = time.monotonic()
        with turn as given:
            self._begun += time.monotonic() - asked
            yield given

    def _compile(self) -> None:
        self._say(f"compiling {len(self._sources)} variants")
        self._compiler.build_ahead()
        sources = list(self._sources.values())
        with self._once_free(self._platform.compiling()) as place:
            until = self._moment(_COMPILED_BY)
            made = self._compiler.build_variants(sources, place, until)
        pairs = zip(self._sources, made, strict=True)
        self._cohort.members = [name for name, is_made in pairs if is_made]

    def _find_right_ones(self, workload: Workload) -> None:
        """Keep the variants that answer one set of inputs rightly, and see how long that takes."""
        pool, checked = self._bench.prepare(workload).pool, set[str]()
        pool.hand_out_checks()  # so that others are drawn for whoever is judged next

        def check(process: ParticipantT) -> None:
            if not self._is_right(process, workload):
                raise Rejected(Reason.WRONG_VALUES)
            usual = self._glance(process, workload)
            self._per_call[workload.name] = min(usual)
            for name in [name for name in self._cohort.members if name not in checked]:
                checked.add(name)
                if time.monotonic() > self._moment(_CHECKED_BY):
                    self._cohort.members.remove(name)
                else:
                    self._check(process, name, workload, usual)

        with self._platform.step("correctness"):
            self._cohort.visit(workload, 1, check)

    def _check(
        self, process: ParticipantT, name: str, workload: Workload, usual: Sequence[float]
    ) -> None:
        with self._cohort.calling(name):
            process.construct()
            if not self._is_right(process, workload):
                self._cohort.drop(name, Reason.WRONG_VALUES)
                return
            for before, seconds in zip(usual, self._glance(process, workload), strict=True):
                self._glances.note(workload.name, {PARENT: before, name: seconds})

    def _is_right(self, process: ParticipantT, workload: Workload) -> bool:
        prepared = self._bench.prepare(workload)
        return answers_right(process, prepared.pool, prepared.described)

    def _glance(self, process: ParticipantT, workload: Workload) -> list[float]:
        """The seconds of single calls."""
        prepared = self._bench.prepare(workload)
        inputs, glance = [prepared.pool.author.draw()], self._platform.glance
        return [glance(process, inputs, prepared.round_trip) for _ in range(_GLANCES)]

    def _leave_slow_ones_out(self) -> None:
        """At a glance that says enough: of short calls it shows little more than the asking."""
        gains = {name: self._glances.gain(name) for name in self._cohort.members}
        self._cohort.members = [
            name
            for name, gain in gains.items()
            if gain is not None and (gain.value > _FAR_BEHIND or gain.high > 1)
        ]

    def _hold_race(self) -> None:
        cohort = self._cohort
        for lap in range(_LAPS_FOR_ALL if self._everybody else _LAPS):
            self._say(f"timing {len(cohort.members)} variants")
            until = self._moment(1.0 if lap else _LATEST)
            for workload in self._bench.task.workloads:
                self._time(workload, until)
            if self._everybody:
                cohort.members = self._race.unsettled(cohort.members, self._target)
            else:
                cohort.members = self._race.still_running(cohort.members)
                if len(cohort.members) <= _FEW and lap > 0:
                    return
            if not cohort.members:
                return

    def _time(self, workload: Workload, until: float) -> None:
        prepared = self._bench.prepare(workload)
        per_call = self._per_call[workload.name]
        length = batch_length(per_call, per_call, prepared.capacity)
        sets = prepared.pool.timing_sets()

        def drive(process: ParticipantT) -> None:
            self._round(process, list(islice(sets, 1)), prepared.round_trip, new=True)
            for _ in range(_ROUNDS):
                if time.monotonic() > until:
                    raise _TimeIsUp
                times = self._round(process, list(islice(sets, length)), prepared.round_trip)
                self._race.note(workload.name, times)

        self._cohort.visit(workload, length, drive)

    def _round(
        self,
        process: ParticipantT,
        sets: Sequence[InputSet],
        round_trip: float,
        *,
        new: bool = False,
    ) -> dict[str, float]:
        """Time everybody once, on the same inputs, in another order each time. `new`: their modules
        are to be built, and the first call makes them ready."""
        times = {}
        everybody = [PARENT, *self._cohort.members]
        for name in _random.sample(everybody, len(everybody)):
            with self._cohort.calling(name):
                if new:
                    process.construct()
                times[name] = self._platform.glance(process, sets, round_trip)
        process.unbind()
        return times
