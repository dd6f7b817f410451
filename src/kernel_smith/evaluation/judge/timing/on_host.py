"""A candidate timed on the CPU beside its baselines, and where its time went."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kernel_smith.evaluation.judge.evidence.environment import (
    instruction_set,
    processor_name,
    store_bytes_per_second,
)
from kernel_smith.evaluation.judge.evidence.time_shares import Profile
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.base import Timings
from kernel_smith.evaluation.judge.platform.bench import COMPILED, Bench, Prepared
from kernel_smith.evaluation.judge.platform.participant import CANDIDATE, Participant
from kernel_smith.evaluation.judge.timing.baseline_ratios import (
    EAGER,
    BaselineRatios,
    ratio_of_contest,
)
from kernel_smith.evaluation.judge.timing.host_clock import Measurement, batch_length, measure
from kernel_smith.evaluation.judge.timing.integrity import (
    check_physics,
    check_processor_use,
    check_seen,
)
from kernel_smith.evaluation.judge.timing.library_share import (
    LibraryShare,
    check_library_share,
    check_settled,
)
from kernel_smith.evaluation.judge.timing.outcome import side_by_side
from kernel_smith.evaluation.judge.timing.rival import Rival, blame
from kernel_smith.evaluation.judge.timing.spot_rounds import SpotRounds
from kernel_smith.evaluation.judge.timing.verifier import TimedVerifier
from kernel_smith.records import KnownBaseline, Workload, WorkloadWork

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.contestant import Contestant


class HostTiming:
    """One candidate's. `seconds`: per call, by workload, as seen when it was checked."""

    def __init__(
        self,
        bench: Bench[Participant],
        contestant: Contestant[Participant],
        rival: Rival[Participant] | None,
        seconds: Mapping[str, float],
    ) -> None:
        self._bench = bench
        self._contestant = contestant
        self._candidate = contestant.participant
        self._rival = rival
        self._seconds = seconds
        self._options = contestant.options
        self._cores = bench.platform.place.timed
        self._profile = Profile(self._candidate, str(contestant.compiler.armed))

    def run(self) -> Timings:
        contestant, task = self._contestant, self._contestant.task
        work = tuple(work for w in task.workloads if (work := self._work(w)) is not None)
        with self._bench.platform.alone(), contestant.journal.step("timing"):
            measurements = {w.name: self._measure(w) for w in task.workloads}
            with contestant.explaining(loading=False):
                kernels = self._profile.shares()
        if self._candidate.not_sampled:
            contestant.journal.note(f"no time shares by module: {self._candidate.not_sampled}")
        outcomes = {
            name: side_by_side(measurement, CANDIDATE, self._options.baselines)
            for name, measurement in measurements.items()
        }
        known = self._keep_baselines(measurements)
        return Timings(outcomes, {"kernels": kernels, "work": work, "known_baselines": known})

    def _work(self, workload: Workload) -> WorkloadWork | None:
        """What a call must move and compute; of a large workload nothing, since to count takes a
        call. It explains a time and decides nothing, so no reference fails by it."""
        if self._bench.prepare(workload).pool.is_large:
            return None
        with contextlib.suppress(Exception):
            counted = self._bench.work(workload)
            return WorkloadWork(
                workload=workload.name, bytes=counted.traffic_bytes, flops=counted.flops
            )
        return None

    def _keep_baselines(self, measurements: Mapping[str, Measurement]) -> tuple[KnownBaseline, ...]:
        """Keep how those that were timed compare with eager, and return all that are known."""
        ratios = BaselineRatios(self._contestant.task, _processor(len(self._cores)))
        timed = [name for name in COMPILED if {name, EAGER} <= set(self._options.baselines)]
        for workload in self._contestant.task.workloads:
            for name in timed:
                ratios.put(
                    workload, name, ratio_of_contest(name, measurements[workload.name], None)
                )
        return ratios.known(COMPILED)

    def _measure(self, workload: Workload) -> Measurement:
        contestant = self._contestant
        contestant.journal.say(f"timing {workload.name}")
        sets = self._bench.prepare(workload).pool.timing_sets()
        measurement = self._time(workload, sets)
        with contestant.explaining(loading=False):
            more = self._profile.sample(sets)
        if not contestant.task.library_calls:
            seconds = measurement.samples[CANDIDATE].cpu_per_call
            for pointers in (measurement.pointers, measurement.pointers + more):
                check_library_share(self._profile.shares(pointers), seconds)
            if self._candidate.sampler is not None:
                check_settled(self._profile.shares(measurement.pointers), seconds)
        with contestant.explaining(loading=False):
            self._leave(workload)
        return measurement

    def _time(self, workload: Workload, sets: Iterator[InputSet]) -> Measurement:
        contestant, bench = self._contestant, self._bench
        prepared = bench.prepare(workload)
        length = self._batch_length(prepared, workload)
        with contestant.explaining(loading=False):
            bench.enter(self._candidate, workload, length, timed=True)
        baselines = self._baselines(workload, length)
        verifier = TimedVerifier(
            self._candidate,
            baselines[0],
            prepared.pool,
            prepared.described,
            lambda inputs: contestant.ask_fresh_process(bench, workload, inputs),
        )
        spots = SpotRounds(
            self._candidate, baselines, sets, length, verifier, prepared.pool.in_place_of
        )
        with contestant.explaining(loading=False):
            measurement = measure(
                self._candidate,
                baselines,
                sets,
                length,
                self._options.sampling,
                verifier,
                verifier.check_hidden,
                spots,
                watched=not contestant.task.library_calls,
                settled=self._knows_library_share,
            )
        check_seen(workload.name, spots.fell_short)
        self._check_integrity(prepared, measurement, baselines[0].name)
        return measurement

    def _knows_library_share(self, measurement: Measurement) -> bool:
        """Of a task that allows the library nobody asks, and without samples nobody can tell."""
        if self._contestant.task.library_calls or self._candidate.sampler is None:
            return True
        seconds = measurement.samples[CANDIDATE].cpu_per_call
        shares = self._profile.shares(measurement.pointers)
        return LibraryShare.of(shares, seconds).is_settled

    def _baselines(self, workload: Workload, length: int) -> list[Participant]:
        """Whoever the candidate is timed beside."""
        if COMPILED.keys() & set(self._options.baselines):
            self._contestant.journal.say(f"timing {workload.name}: torch.compile")
        baselines = self._bench.baselines(workload, self._options, length)
        if self._rival is not None:
            with blame(self._rival.participant):
                self._bench.enter(self._rival.participant, workload, length, timed=True)
            baselines.append(self._rival.participant)
        return baselines

    def _check_integrity(self, prepared: Prepared, measurement: Measurement, baseline: str) -> None:
        mine, theirs = measurement.samples[CANDIDATE], measurement.samples[baseline]
        check_processor_use(mine.windows, theirs.windows, len(self._cores))
        middle = statistics.median_high(mine.seconds)
        speed = len(self._cores) * store_bytes_per_second()
        check_physics(middle, prepared.output_bytes, speed, measurement.doubt)

    def _batch_length(self, prepared: Prepared, workload: Workload) -> int:
        if not prepared.pool.can_replace_inputs:  # nobody sees then who computes several together
            return 1
        rival = 0.0 if self._rival is None else self._rival.seconds[workload.name]
        mine, capacity = self._seconds[workload.name], prepared.capacity
        return batch_length(prepared.seconds, mine, capacity, rival_seconds=rival)

    def _leave(self, workload: Workload) -> None:
        """A large workload gives its memory back before the next one takes its own."""
        rivals = [] if self._rival is None else [self._rival.participant]
        for participant in (self._candidate, *rivals):
            self._bench.leave(participant, workload)
        self._bench.dismiss(workload)


def _processor(cores: int) -> str:
    return f"{processor_name()}, {instruction_set()}, {cores} timed"
