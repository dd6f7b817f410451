"""A candidate on its way to the clock: screened, compiled, loaded and checked.

The one that is evaluated and the one that it is timed beside go the same way. Nothing here believes
a word that a candidate's process says; it may only do the work.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Generic

import torch

from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.judge.compiling.source import Maker
from kernel_smith.evaluation.judge.correctness import Checked, answers_right, check_workload
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.inputs.interpreting import interpretable_part
from kernel_smith.evaluation.judge.inputs.pool import Pool
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.journal import Journal
from kernel_smith.evaluation.judge.platform.base import Platform, Provide
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.participant import CANDIDATE, ParticipantT
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing.rival import Rival
from kernel_smith.evaluation.screen import screen
from kernel_smith.records import (
    Candidate,
    CompiledKernel,
    Confinement,
    Options,
    Reason,
    Task,
    Workload,
)

_MOST_KERNELS, _LONGEST_NAME = 64, 200
_STRUCTURAL = frozenset({Reason.SYNTAX_ERROR, Reason.NO_MODELNEW})
_NOT_DISARMED = (
    "with its kernels replaced by no-ops the candidate cannot be imported: it calls them then, and "
    "whether they matter to its results was not tested"
)
_NO_FETCHING = (
    "results were handed over by the candidate's own process, because reading its memory "
    "(process_vm_readv) is not permitted here: work hidden there is bounded, not excluded"
)


class Contestant(Generic[ParticipantT]):
    def __init__(
        self,
        platform: Platform[ParticipantT],
        task: Task,
        candidate: Candidate,
        options: Options,
        journal: Journal,
        role: str = CANDIDATE,
    ) -> None:
        self.platform = platform
        self.candidate = candidate
        self.options = options
        self.journal = journal
        self.backend = find_backend(candidate.backend)
        self.route = self.backend.route(on_device=platform.is_gpu)
        """How its kernels get to run here. Only natively they can be timed."""
        self.task = self._interpretable_part(task) if self.interpreted else task
        self.confinement = Confinement()
        self._role = role
        self._largest = Footprint(0, 0, 0, 0)  # of all workloads
        self._compiler: Maker | None = None
        self._armed: ParticipantT | None = None
        self.disarmed: ParticipantT | None = None

    @property
    def interpreted(self) -> bool:
        """Do kernels for a GPU run on the CPU?"""
        return self.route == "cpu"

    @property
    def conformance(self) -> bool:
        """Is even the GPU of this machine, if there is one, not what the kernels are for?"""
        return self.route != "native" and self.backend.route(on_device=True) != "native"

    @property
    def leaves_kernels_out(self) -> bool:
        """Say whether graphs can be captured without its kernels, in the process that has them. A
        program is less able to tell than in a process of its own."""
        return self.platform.is_gpu and self.backend.in_process

    @property
    def compiler(self) -> Maker:
        assert self._compiler is not None, "compiled before anything else"
        return self._compiler

    @property
    def participant(self) -> ParticipantT:
        """The process that is checked and timed."""
        assert self._armed is not None, "compiled before anything else"
        return self._armed

    def _interpretable_part(self, task: Task) -> Task:
        part = interpretable_part(task)
        left_out = [w.name for w in task.workloads if w not in part.workloads]
        if left_out:
            self.journal.note(f"too large for the interpreter: {', '.join(left_out)}")
        return part

    def screen(self) -> ast.Module:
        findings = screen(self.candidate.source, self.candidate.name)
        decisive = [f for f in findings if self.options.screen or f.reason in _STRUCTURAL]
        if decisive:
            first = decisive[0]
            raise Rejected(first.reason, first.message, findings=tuple(findings))
        return ast.parse(self.candidate.source)

    def compile(self, tree: ast.Module, largest: Footprint) -> None:
        """Build the kernels, while the process that will load them makes itself ready."""
        platform, limits = self.platform, self.options.limits
        self._largest = largest
        compiler = platform.compiler(self.candidate, self.backend, tree, limits)
        self._compiler = compiler
        self._armed = self._launch(compiler.armed, compiler.provide)
        compiler.build_ahead()

    def load(self) -> None:
        candidate = self.participant
        with self.journal.step("load"), self.explaining(loading=True):
            candidate.observe(self.platform.place.timed)
            self.confinement = candidate.child.confinement
            self._load(candidate)

    def check_everything(self, bench: Bench[ParticipantT]) -> dict[str, Checked]:
        # Needed later; they make themselves ready while the judge compares results.
        if not self.leaves_kernels_out:
            self._launch_disarmed()
        bench.renew_reference()
        checked = self.check(bench)
        with self.journal.step("kernels"):
            self._check_kernels_matter(bench)
        return checked

    def check(self, bench: Bench[ParticipantT]) -> dict[str, Checked]:
        """Its results, on all workloads."""
        with self.journal.step("correctness"):
            if not bench.is_large:
                self._look_ahead()
            return {w.name: self._check_workload(bench, w) for w in self.task.workloads}

    def _look_ahead(self) -> None:
        """Have processes for the next candidate make themselves ready. A context takes a good part
        of a gigabyte: where calls are large, not before this candidate's processes have gone."""
        self.platform.look_ahead(self.backend, self.options.limits)

    def qualify(self, bench: Bench[ParticipantT]) -> Rival[ParticipantT]:
        """Take this candidate as far as the clock, for the sake of another.

        Whether its kernels matter is tested once on a bench. Its results are checked each time: how
        fast a process is depends on what it did before, and the other's was checked as well.
        """
        self.compile(self.screen(), bench.largest())
        self.load()
        own_hash = self.candidate.content_hash
        if own_hash in bench.qualified:
            checked = self.check(bench)
        else:
            checked = self.check_everything(bench)
            bench.qualified.add(own_hash)
        seconds = {name: check.seconds_per_call for name, check in checked.items()}
        return Rival(self.participant, own_hash, seconds)

    def _check_workload(self, bench: Bench[ParticipantT], workload: Workload) -> Checked:
        candidate = self.participant
        self.journal.say(f"checking {workload.name}")
        with self.explaining(loading=True):
            pool = bench.prepare(workload).pool
            prepared = bench.enter(candidate, workload, pool.checks_at_once)
        with self.explaining(loading=False), self._naming_what_it_lacks(workload):
            checked = check_workload(candidate, pool, prepared.described, prepared.round_trip)
        self._note_limits(workload, pool)
        with self.explaining(loading=False):
            bench.leave(candidate, workload)
        return checked

    @contextlib.contextmanager
    def _naming_what_it_lacks(self, workload: Workload) -> Iterator[None]:
        try:
            yield
        except Rejected:
            if self.participant.lacking:
                names = ", ".join(self.participant.lacking)
                self.journal.note(
                    f"{workload.name}: it has no parameters or statistics with the reference's "
                    f"names and shapes for {names}, so it did not get their values"
                )
            raise

    def _note_limits(self, workload: Workload, pool: Pool) -> None:
        """What a check that was passed did not cover."""
        if not self.participant.fetches:
            self.journal.note(_NO_FETCHING)
        if self.participant.redrawn:
            self.journal.note(
                f"{workload.name}: {self.participant.redrawn} parameters were drawn in another "
                "order than the reference's; its values were loaded"
            )
        if pool.left_out:
            left_out = ", ".join(pool.left_out)
            self.journal.note(f"{workload.name}: variants outside its domain: {left_out}")
        if pool.note:
            self.journal.note(f"{workload.name}: {pool.note}")

    def _check_kernels_matter(self, bench: Bench[ParticipantT]) -> None:
        """Replace the authored kernels by no-ops: the result must not stay right.

        Some workloads may be left to the library; a decoy is a kernel that no workload needs.
        """
        seen_at_work = self.interpreted and self.backend.in_process
        if not self.compiler.has_kernels and not seen_at_work:
            raise Rejected(Reason.NO_AUTHORED_KERNEL)
        if not self.compiler.can_disarm:
            self.journal.note("the no-op replay is not available on this processor")
            return
        needed = self._needs_kernels(bench) if self.leaves_kernels_out else None
        if needed is False:
            raise Rejected(Reason.DECOY_KERNEL)
        if needed is None:
            self._check_disarmed_process(bench)

    def _needs_kernels(self, bench: Bench[ParticipantT]) -> bool | None:
        """Try without them in the process that is timed: True if results are wrong on any workload,
        None if that cannot be tried there."""
        unknown = False
        for workload in self._cheapest_first(bench):
            with self.explaining(loading=False):
                right = self.platform.is_right_without_kernels(bench, self.participant, workload)
            if right is False:
                return True
            unknown |= right is None
        return None if unknown else False

    def _check_disarmed_process(self, bench: Bench[ParticipantT]) -> None:
        disarmed = self.disarmed or self._launch_disarmed()
        try:
            self._load(disarmed)
        except ChildFailed:
            self.journal.note(_NOT_DISARMED)
        else:
            if self._is_right_without_kernels(bench, disarmed):
                raise Rejected(Reason.DECOY_KERNEL)
        finally:
            timed = self.platform.times_without_kernels and not self.leaves_kernels_out
            if self.task.library_calls or not timed:
                self.platform.end(disarmed)

    def _cheapest_first(self, bench: Bench[ParticipantT]) -> list[Workload]:
        return sorted(self.task.workloads, key=lambda w: bench.prepare(w).seconds)

    def _launch_disarmed(self) -> ParticipantT:
        self.disarmed = self._launch(self.compiler.disarmed, self.compiler.provide_disarmed)
        return self.disarmed

    def _is_right_without_kernels(self, bench: Bench[ParticipantT], disarmed: ParticipantT) -> bool:
        try:
            return all(_stays_right(bench, disarmed, w) for w in self._cheapest_first(bench))
        except ChildFailed:
            return False

    def ask_fresh_process(
        self, bench: Bench[ParticipantT], workload: Workload, inputs: InputSet
    ) -> list[torch.Tensor] | None:
        """What the candidate answers in a process without a past; None if it fails."""
        participant = self._launch(self.compiler.armed, self.compiler.provide)
        try:
            self._load(participant)
            bench.enter(participant, workload, 1)
            participant.bind([inputs])
            participant.run()
            return [tensor.clone() for tensor in participant.outputs(0)]
        except ChildFailed:
            return None
        finally:
            self.platform.end(participant)

    def _launch(self, objects: Path, provide: Provide) -> ParticipantT:
        limits = self.options.limits
        return self.platform.launch(self._role, objects, provide, limits, self._largest)

    def _load(self, participant: ParticipantT) -> None:
        manner = self.platform.candidate_manner(
            self.task,
            disarmed=participant is self.disarmed,
            interpreted=self.interpreted and self.backend.in_process,
        )
        candidate, threads = self.candidate, len(self.platform.place.timed)
        participant.load(candidate.source, candidate.name, "ModelNew", threads, **manner)

    @contextlib.contextmanager
    def explaining(self, *, loading: bool) -> Iterator[None]:
        """Turn a failed child into a rejection; a failed compilation explains itself better."""
        try:
            yield
        except ChildFailed as failure:
            if self._compiler is not None and self._compiler.rejection is not None:
                raise self._compiler.rejection from None
            raise Rejected.from_failure(failure, loading=loading) from None

    def compiled_kernels(self) -> tuple[CompiledKernel, ...]:
        """What its compiler said of its kernels, as far as they were compiled for a GPU."""
        told = [] if self._compiler is None else self._compiler.resources
        return tuple(
            CompiledKernel(
                name=kernel.name[:_LONGEST_NAME],
                registers=kernel.registers,
                spill_bytes=kernel.spill_bytes,
                shared_bytes=kernel.shared,
            )
            for kernel in told[:_MOST_KERNELS]
        )

    def what_emulation_said(self) -> str:
        """Why a launch was aborted, where kernels are emulated: their caller rarely asks."""
        emulated = self.interpreted and not self.backend.in_process
        return self._armed.child.read_log() if emulated and self._armed is not None else ""

    @property
    def calling_seconds(self) -> float:
        return sum(participant.calling_seconds for participant in self._processes())

    def end_processes(self) -> None:
        """Return when they are gone."""
        for participant in self._processes():
            if not participant.ended:
                self.platform.end(participant)
                participant.child.exit_report()

    def _processes(self) -> list[ParticipantT]:
        return [p for p in (self._armed, self.disarmed) if p is not None]

    def close(self) -> None:
        self.platform.retire(self._processes(), self._compiler)
        if self._armed is not None:
            self._look_ahead()


def _stays_right(bench: Bench[ParticipantT], disarmed: ParticipantT, workload: Workload) -> bool:
    prepared = bench.enter(disarmed, workload, 1)
    right = answers_right(disarmed, prepared.pool, prepared.described)
    with contextlib.suppress(ChildFailed):
        bench.leave(disarmed, workload)
    return right
