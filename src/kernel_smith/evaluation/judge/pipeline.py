"""One evaluation: a candidate is taken through every gate, and what was seen is written down.

    screen -> compile -> load -> correctness -> do the kernels matter? -> timing -> verdict

The first gate that fails ends the evaluation with its reason. Nothing here believes a word that the
candidate's process says; it may only do the work.
"""

from __future__ import annotations

import ast
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from kernel_smith.evaluation.backends import Route, find_backend
from kernel_smith.evaluation.judge.compiling.source import Maker
from kernel_smith.evaluation.judge.correctness import (
    Checked,
    answers_right,
    check_workload,
)
from kernel_smith.evaluation.judge.evidence.environment import describe_machine
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.rejection import Rejected, Suspected
from kernel_smith.evaluation.judge.timing.outcome import Outcome, gains, summarise
from kernel_smith.evaluation.judge.timing.rival import RIVAL, Rival
from kernel_smith.evaluation.judge.timing.twins import fingerprint
from kernel_smith.evaluation.screen import screen
from kernel_smith.records import (
    MEANINGS,
    Accuracy,
    Beside,
    Candidate,
    Confinement,
    Evaluation,
    Options,
    Reason,
    Stage,
    Task,
    Workload,
    content_hash,
)

CANDIDATE = "candidate"
_STRUCTURAL = frozenset({Reason.SYNTAX_ERROR, Reason.NO_MODELNEW})
_NOT_DISARMED = (
    "with its kernels replaced by no-ops the candidate cannot be imported: it calls them then, and "
    "whether they matter to its results was not tested"
)
_NO_FETCHING = (
    "results were handed over by the candidate's own process, because reading its memory "
    "(process_vm_readv) is not permitted here: work hidden there is bounded, not excluded"
)

Progress = Callable[[str], None]


class Session(ABC):
    """The state of one evaluation. Subclasses know where it runs: see `HostSession`."""

    route: Route
    """How the candidate's kernels get to run here. Only natively they can be timed."""

    @property
    def keeps_disarmed(self) -> bool:
        """Is the process whose kernels do nothing of use after the check that they matter?"""
        return False

    def __init__(
        self,
        processes: ProcessPool,
        place: CoreSet,
        make_ready: Callable[[Task, Options], Bench],
        task: Task,
        candidate: Candidate,
        options: Options,
        progress: Progress,
    ) -> None:
        self._processes = processes
        self._place = place
        self._make_ready = make_ready
        self._backend = find_backend(candidate.backend)
        self._notes: list[str] = []
        self._asked = self._task = task
        self._candidate = candidate
        self._options = options
        self._progress = progress
        self._seconds: dict[str, float] = {}
        self._confinement = Confinement()
        self._armed: Participant | None = None
        self._disarmed: Participant | None = None
        self._compiler: Maker | None = None
        self._binary: str | None = None
        self._invited: Session | None = None
        self._rival: Rival | None = None
        self._beside: Beside | None = None
        self._largest = Footprint(0, 0, 0, 0)  # of all workloads
        self.role = CANDIDATE
        self.in_doubt = False

    @property
    def interpreted(self) -> bool:
        """Do kernels for a GPU run on the CPU?"""
        return self.route == "cpu"

    @property
    def conformance(self) -> bool:
        """Is even the GPU of this machine, if there is one, not what the kernels are for?"""
        return self.route != "native" and self._backend.route(on_device=True) != "native"

    def run(self, beside: Session | None = None) -> Evaluation:
        """`beside`: the session of another candidate, which this one is timed beside."""
        self._invited = beside
        try:
            with self._step("screen"):
                tree = self._screen()
            self._check_options()
            with self._step("task"):
                bench = self._make_ready(self._task, self._options)
                for workload in self._task.workloads:
                    bench.prepare(workload)
                self._largest = bench.largest()
            with bench.claims().holding(bench.lane_bytes(), self._tell_of_waiting):
                with self._step("compile"):
                    self._compile(tree)
                return self._run_gates(bench)
        except Rejected as rejected:
            self.in_doubt = isinstance(rejected, Suspected)
            return self._record(reason=rejected.reason, rejected=rejected)

    def _tell_of_waiting(self, held: int) -> None:
        self._progress(f"waiting for memory: other evaluations hold {held / (1 << 30):.1f} GiB")

    def qualify(self, bench: Bench) -> Rival:
        """Take this candidate as far as the clock, for the sake of another.

        Whether its kernels matter is tested once on a bench. Its results are checked each time: how
        fast a process is depends on what it did before, and the other's was checked as well.
        """
        self.role = RIVAL
        self._largest = bench.largest()
        self._compile(self._screen())
        candidate, own_hash = self._start(), self._candidate.content_hash
        if own_hash in bench.qualified:
            checked = self._check(bench, candidate)
        else:
            checked = self._check_everything(bench, candidate)
            bench.qualified.add(own_hash)
        seconds = {name: check.seconds_per_call for name, check in checked.items()}
        return Rival(candidate, own_hash, seconds)

    def _start(self) -> Participant:
        candidate = self._armed
        assert candidate is not None
        with self._step("load"), self._explaining(loading=True):
            candidate.observe(self._place.timed)
            self._confinement = candidate.child.confinement
            self._load(candidate)
        return candidate

    def _check_everything(self, bench: Bench, candidate: Participant) -> dict[str, Checked]:
        compiler = self._compiler
        assert compiler is not None
        # Needed later; they make themselves ready while the judge compares results.
        self._disarmed = self._launch(compiler.disarmed, compiler.provide_disarmed)
        bench.renew_reference()
        with self._step("correctness"):
            checked = self._check(bench, candidate)
        with self._step("kernels"):
            self._check_kernels_matter(bench)
        return checked

    def _run_gates(self, bench: Bench) -> Evaluation:
        candidate, compiler = self._start(), self._compiler
        assert compiler is not None
        checked = self._check_everything(bench, candidate)
        self._seconds["calls before timing"] = sum(
            p.calling_seconds for p in (self._armed, self._disarmed) if p is not None
        )
        self._seconds["compiler alone"] = compiler.compiling_seconds
        accuracy = _worst_accuracy(list(checked.values()))
        if self.route != "native":
            return self._record(reason=None, accuracy=accuracy)
        self._binary = fingerprint(
            self._candidate.source, compiler.kernel_texts, compiler.products()
        )
        if self._invited is not None:
            self._invite(self._invited, bench)
        if self._binary is None or self._invited is not None:
            return self._time(bench, candidate, checked, accuracy)
        key = content_hash(self._binary, self._options.model_dump_json())
        twin = bench.twins.find(key, self._candidate.content_hash)
        if twin is not None and not self._options.time_twins:
            return self._record_twin(twin, accuracy)
        evaluation = self._time(bench, candidate, checked, accuracy)
        if evaluation.ok:
            bench.twins.remember(key, evaluation)
        return evaluation

    def _invite(self, session: Session, bench: Bench) -> None:
        """A rival that does not pass the gates cannot be timed; the candidate still can."""
        with self._step("beside"):
            try:
                self._rival = session.qualify(bench)
            except Rejected as rejected:
                self._beside = session.unqualified(rejected.reason, rejected.message)

    def unqualified(self, reason: Reason, message: str) -> Beside:
        """What the evaluation of another candidate says of this one, if it cannot be timed."""
        return Beside(candidate_hash=self._candidate.content_hash, reason=reason, message=message)

    def _record_timing(self, outcomes: Mapping[str, Outcome], **fields: Any) -> Evaluation:
        timing, reason = summarise(self._task, outcomes, self._options, self._place)
        if self._rival is not None:
            self._beside = gains(self._task, outcomes, self._rival.candidate_hash)
        message = ""
        if reason is Reason.TOO_NOISY:
            half = max(s.speedup.half_width for s in timing.speedups)
            message = f"the interval is +-{half:.1%} wide"
        return self._record(reason=reason, message=message, timing=timing, **fields)

    def _record_twin(self, twin: Evaluation, accuracy: Accuracy) -> Evaluation:
        """What was measured of a program that compiles to the same."""
        carried = ("timing", "kernels", "device", "device_kernels", "rooflines", "ceilings")
        fields = {name: getattr(twin, name) for name in carried}
        self._notes.append(
            f"compiles to the same as candidate {twin.candidate_hash[:12]}, and was not timed: "
            "these are its times"
        )
        return self._record(reason=None, accuracy=accuracy, twin=twin.candidate_hash, **fields)

    @abstractmethod
    def _check_options(self) -> None:
        """Raise `BadInput` where options do not fit the place."""

    @abstractmethod
    def _maker(self, tree: ast.Module) -> Maker:
        """Who compiles for this candidate."""

    @abstractmethod
    def _launch(self, objects: Path, provide: Callable[[Any], dict[str, Any]]) -> Participant:
        """Start a process for the candidate, which can read `objects`. Does not wait for it."""

    @abstractmethod
    def _load(self, participant: Participant) -> None:
        """Have the candidate imported."""

    @abstractmethod
    def _time(
        self,
        bench: Bench,
        candidate: Participant,
        checked: dict[str, Checked],
        accuracy: Accuracy,
    ) -> Evaluation:
        """Time a candidate that passed all other gates, and write down the evidence."""

    def _screen(self) -> ast.Module:
        findings = screen(self._candidate.source, self._candidate.name)
        decisive = [f for f in findings if self._options.screen or f.reason in _STRUCTURAL]
        if decisive:
            first = decisive[0]
            raise Rejected(first.reason, first.message, findings=tuple(findings))
        return ast.parse(self._candidate.source)

    def _compile(self, tree: ast.Module) -> None:
        """Build the kernels, while the process that will load them makes itself ready."""
        compiler = self._maker(tree)
        self._compiler = compiler
        self._armed = self._launch(compiler.armed, compiler.provide)
        compiler.build_ahead()

    def _check(self, bench: Bench, candidate: Participant) -> dict[str, Checked]:
        checked = {}
        for workload in self._task.workloads:
            self._progress(f"checking {workload.name}")
            with self._explaining(loading=True):
                pool = bench.prepare(workload).pool
                prepared = bench.enter(candidate, workload, pool.checks_at_once)
            with self._explaining(loading=False):
                checked[workload.name] = check_workload(
                    candidate, prepared.pool, prepared.described, prepared.round_trip
                )
            if not candidate.fetches and _NO_FETCHING not in self._notes:
                self._notes.append(_NO_FETCHING)
            if candidate.redrawn:
                self._notes.append(
                    f"{workload.name}: {candidate.redrawn} parameters were drawn in another order "
                    "than the reference's; its values were loaded"
                )
            if prepared.pool.left_out:
                left_out = ", ".join(prepared.pool.left_out)
                self._notes.append(f"{workload.name}: variants outside its domain: {left_out}")
            if prepared.pool.note:
                self._notes.append(f"{workload.name}: {prepared.pool.note}")
            with self._explaining(loading=False):
                bench.leave(candidate, workload)
        return checked

    def _check_kernels_matter(self, bench: Bench) -> None:
        """Replace the authored kernels by no-ops: the result must not stay right.

        Some workloads may be left to the library; a decoy is a kernel that no workload needs.
        """
        compiler = self._compiler
        assert compiler is not None
        seen_at_work = self.interpreted and self._backend.in_process
        if not compiler.has_kernels and not seen_at_work:
            raise Rejected(Reason.NO_AUTHORED_KERNEL)
        if not compiler.can_disarm:
            self._notes.append("the no-op replay is not available on this processor")
            return
        participant = self._disarmed
        assert participant is not None
        try:
            self._load(participant)
        except ChildFailed:
            self._notes.append(_NOT_DISARMED)
        else:
            if self._is_right_without_kernels(bench, participant):
                raise Rejected(Reason.DECOY_KERNEL)
        finally:
            if not self.keeps_disarmed:
                self._end(participant)

    def _is_right_without_kernels(self, bench: Bench, disarmed: Participant) -> bool:
        cheapest_first = sorted(self._task.workloads, key=lambda w: bench.prepare(w).seconds)
        try:
            return all(_stays_right(bench, disarmed, workload) for workload in cheapest_first)
        except ChildFailed:
            return False

    def _ask_fresh_process(
        self, bench: Bench, workload: Workload, inputs: InputSet
    ) -> list[torch.Tensor] | None:
        """What the candidate answers in a process without a past; None if it fails."""
        compiler = self._compiler
        assert compiler is not None
        participant = self._launch(compiler.armed, compiler.provide)
        try:
            self._load(participant)
            bench.enter(participant, workload, 1)
            participant.bind([inputs])
            participant.run()
            return [tensor.clone() for tensor in participant.outputs(0)]
        except ChildFailed:
            return None
        finally:
            self._end(participant)

    @contextlib.contextmanager
    def _explaining(self, *, loading: bool) -> Iterator[None]:
        """Turn a failed child into a rejection; a failed compilation explains itself better."""
        try:
            yield
        except ChildFailed as failure:
            if self._compiler is not None and self._compiler.rejection is not None:
                raise self._compiler.rejection from None
            raise Rejected.from_failure(failure, loading=loading) from None

    @contextlib.contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self._progress(name)
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = round(time.perf_counter() - begin, 6)

    def _record(
        self, *, reason: Reason | None, rejected: Rejected | None = None, **fields: Any
    ) -> Evaluation:
        if rejected is not None:
            fields |= {"message": rejected.message, **rejected.evidence}
            fields.setdefault("log", self._what_emulation_said())
        stage = MEANINGS[reason].stage if reason else Stage.OK
        return Evaluation(
            task=self._asked.name,
            task_hash=self._asked.content_hash,
            candidate_hash=self._candidate.content_hash,
            backend=self._candidate.backend,
            stage=stage,
            reason=reason,
            interpreted=self.interpreted,
            conformance=self.conformance,
            beside=self._beside,
            notes=tuple(self._notes),
            binary=self._binary,
            confinement=self._confinement,
            environment=describe_machine(),
            seconds=self._seconds,
            created_at=datetime.now(UTC),
            **fields,
        )

    def _what_emulation_said(self) -> str:
        """Why a launch was aborted, where kernels are emulated: their caller rarely asks."""
        emulated = self.interpreted and not self._backend.in_process
        return self._armed.child.read_log() if emulated and self._armed is not None else ""

    def give_up_for_memory(self, message: str) -> Evaluation:
        """No memory was left for the judge while this candidate ran, and much once it was gone."""
        rejected = Rejected(Reason.MEMORY_LIMIT, message)
        return self._record(reason=rejected.reason, rejected=rejected)

    def _end(self, participant: Participant) -> None:
        participant.close()
        self._processes.end(participant.child)

    def close(self) -> None:
        for participant in (self._armed, self._disarmed):
            if participant is not None and not participant.ended:
                self._end(participant)
        if self._compiler is not None:
            self._compiler.close()


def _stays_right(bench: Bench, disarmed: Participant, workload: Workload) -> bool:
    prepared = bench.enter(disarmed, workload, 1)
    right = answers_right(disarmed, prepared.pool, prepared.described)
    with contextlib.suppress(ChildFailed):
        bench.leave(disarmed, workload)
    return right


def _worst_accuracy(checked: list[Checked]) -> Accuracy:
    return max((c.accuracy for c in checked), key=lambda a: a.candidate_error or 0.0)
