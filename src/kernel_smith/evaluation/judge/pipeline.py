"""One evaluation: a candidate is taken through every gate, and what was seen is written down.

    screen -> compile -> load -> correctness -> do the kernels matter? -> timing -> verdict

The first gate that fails ends the evaluation with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic

from kernel_smith.evaluation.judge.contestant import Contestant
from kernel_smith.evaluation.judge.correctness import Checked
from kernel_smith.evaluation.judge.evidence.environment import describe_machine
from kernel_smith.evaluation.judge.journal import Journal, Progress
from kernel_smith.evaluation.judge.platform.base import Platform
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.participant import RIVAL, ParticipantT
from kernel_smith.evaluation.judge.rejection import Rejected, Suspected
from kernel_smith.evaluation.judge.timing.outcome import gains, summarise
from kernel_smith.evaluation.judge.timing.rival import Rival, RivalFailed
from kernel_smith.evaluation.judge.timing.twins import agree, briefly, fingerprint
from kernel_smith.records import (
    MEANINGS,
    Accuracy,
    Beside,
    Candidate,
    Evaluation,
    Options,
    Reason,
    Stage,
    Task,
    content_hash,
)

# Fields of an evaluation that say what was measured, which holds for twins, too.
_MEASURED = (
    "timing",
    "kernels",
    "device",
    "device_kernels",
    "rooflines",
    "work",
    "ceilings",
    "known_baselines",
)


class Pipeline(Generic[ParticipantT]):
    """`beside`: another candidate, which this one is timed beside."""

    def __init__(
        self,
        platform: Platform[ParticipantT],
        make_ready: Callable[[Task, Options], Bench[ParticipantT]],
        task: Task,
        candidate: Candidate,
        options: Options,
        progress: Progress,
        beside: Candidate | None = None,
    ) -> None:
        self._platform = platform
        self._make_ready = make_ready
        self._asked = task
        self._options = options
        self._journal = Journal(progress, platform.step)
        self._contestant = Contestant(platform, task, candidate, options, self._journal)
        self._task = self._contestant.task
        self._invited: Contestant[ParticipantT] | None = None
        if beside is not None:
            own = Journal(progress, platform.step)
            self._invited = Contestant(platform, task, beside, options, own, RIVAL)
        self._rival: Rival[ParticipantT] | None = None
        self._beside: Beside | None = None
        self._binary: str | None = None
        self.in_doubt = False

    def run(self) -> Evaluation:
        return self._platform.guard(self._run, self._contestant.end_processes)

    def _run(self) -> Evaluation:
        contestant, step = self._contestant, self._journal.step
        bench: Bench[ParticipantT] | None = None
        try:
            with step("screen"):
                tree = contestant.screen()
            self._platform.check_options(contestant.backend, self._options)
            with step("task"):
                bench = self._make_ready(self._task, self._options)
                for workload in self._task.workloads:
                    bench.prepare(workload)
                largest = bench.largest()
                self._platform.expect(largest)
            with self._platform.claims().holding(largest.lane, self._tell_of_waiting):
                try:
                    with step("compile"):
                        contestant.compile(tree, largest)
                    return self._run_gates(bench)
                finally:
                    bench.give_memory_back()
        except Rejected as rejected:
            self.in_doubt = isinstance(rejected, Suspected)
            if bench is not None:
                bench.reveal()
            return self._record(reason=rejected.reason, rejected=rejected)

    def _tell_of_waiting(self, held: int) -> None:
        self._journal.say(f"waiting for memory: other evaluations hold {held / (1 << 30):.1f} GiB")

    def _run_gates(self, bench: Bench[ParticipantT]) -> Evaluation:
        contestant, compiler = self._contestant, self._contestant.compiler
        contestant.load()
        checked = contestant.check_everything(bench)
        self._journal.seconds["calls before timing"] = contestant.calling_seconds
        self._journal.seconds["compiler alone"] = compiler.compiling_seconds
        if contestant.route != "native":
            return self._record(reason=None, accuracy=_worst_accuracy(checked))
        source = contestant.candidate.source
        jitted = contestant.backend.in_process
        texts, products = compiler.kernel_texts, compiler.products()
        self._binary = fingerprint(source, texts, products, jitted=jitted)
        if self._invited is not None:
            self._invite(self._invited, bench)
        if self._binary is None or self._invited is not None:
            return self._time(bench, checked)
        key = content_hash(self._binary, self._options.model_dump_json())
        twin = bench.twins.find(key, contestant.candidate.content_hash)
        if self._options.time_twins:
            twin = None
        if twin is not None and self._is_as_fast(twin, bench, checked):
            return self._record_twin(twin, _worst_accuracy(checked))
        evaluation = self._time(bench, checked)
        if evaluation.ok:
            bench.twins.remember(key, evaluation)
        return evaluation

    def _invite(self, invited: Contestant[ParticipantT], bench: Bench[ParticipantT]) -> None:
        """A rival that does not pass the gates cannot be timed; the candidate still can."""
        with self._journal.step("beside"):
            try:
                self._rival = invited.qualify(bench)
            except Rejected as rejected:
                self._beside = _unqualified(invited, rejected.reason, rejected.message)

    def without_rival(self, failure: RivalFailed) -> Beside:
        """What is said of a rival that failed when it was timed."""
        assert self._invited is not None
        return _unqualified(self._invited, failure.reason, failure.message)

    def _is_as_fast(
        self, twin: Evaluation, bench: Bench[ParticipantT], checked: dict[str, Checked]
    ) -> bool:
        """As a glance at the clock shows: a program that looks alike may do more."""
        assert twin.timing is not None
        contestant, place = self._contestant, self._platform.place
        contestant.options = briefly(self._options)
        try:
            seconds = {name: check.seconds_per_call for name, check in checked.items()}
            found = self._platform.time(bench, contestant, None, seconds)
        finally:
            contestant.options = self._options
        timing, _ = summarise(self._task, found.outcomes, self._options, place)
        return agree(timing, twin.timing)

    def _time(self, bench: Bench[ParticipantT], checked: dict[str, Checked]) -> Evaluation:
        seconds = {name: check.seconds_per_call for name, check in checked.items()}
        found = self._platform.time(bench, self._contestant, self._rival, seconds)
        place = self._platform.place
        timing, reason = summarise(self._task, found.outcomes, self._options, place)
        if self._rival is not None:
            self._beside = gains(self._task, found.outcomes, self._rival.candidate_hash)
        message = ""
        if reason is Reason.TOO_NOISY:
            half = max(s.speedup.half_width for s in timing.speedups if not s.speedup.decided)
            message = f"the interval is +-{half:.1%} wide and holds 1: it may be faster or slower"
        accuracy = _worst_accuracy(checked)
        return self._record(
            reason=reason, message=message, timing=timing, accuracy=accuracy, **found.evidence
        )

    def _record_twin(self, twin: Evaluation, accuracy: Accuracy) -> Evaluation:
        """What was measured of a program that compiles to the same."""
        fields = {name: getattr(twin, name) for name in _MEASURED}
        self._journal.note(
            f"compiles to the same as candidate {twin.candidate_hash[:12]}, and was timed no "
            "longer than to see that: these are its times"
        )
        return self._record(reason=None, accuracy=accuracy, twin=twin.candidate_hash, **fields)

    def _record(
        self, *, reason: Reason | None, rejected: Rejected | None = None, **fields: Any
    ) -> Evaluation:
        contestant = self._contestant
        if rejected is not None:
            fields |= {"message": rejected.message, **rejected.evidence}
            fields.setdefault("log", contestant.what_emulation_said())
        stage = MEANINGS[reason].stage if reason else Stage.OK
        return Evaluation(
            task=self._asked.name,
            task_hash=self._asked.content_hash,
            candidate_hash=contestant.candidate.content_hash,
            backend=contestant.candidate.backend,
            stage=stage,
            reason=reason,
            interpreted=contestant.interpreted,
            conformance=contestant.conformance,
            beside=self._beside,
            notes=tuple(self._journal.notes),
            binary=self._binary,
            compiled=contestant.compiled_kernels(),
            confinement=contestant.confinement,
            environment=describe_machine(),
            seconds=self._journal.seconds,
            created_at=datetime.now(UTC),
            **fields,
        )

    def give_up_for_memory(self, message: str) -> Evaluation:
        """No memory was left for the judge while this candidate ran, and much once it was gone."""
        rejected = Rejected(Reason.MEMORY_LIMIT, message)
        return self._record(reason=rejected.reason, rejected=rejected)

    def close(self) -> None:
        self._contestant.close()
        if self._invited is not None:
            self._invited.close()


def _unqualified(contestant: Contestant[Any], reason: Reason, message: str) -> Beside:
    """What the evaluation of another candidate says of this one, if it cannot be timed."""
    own_hash = contestant.candidate.content_hash
    return Beside(candidate_hash=own_hash, reason=reason, message=message)


def _worst_accuracy(checked: dict[str, Checked]) -> Accuracy:
    return max((c.accuracy for c in checked.values()), key=lambda accuracy: accuracy.excess)
