"""A program and its variants in one confined process, and who is to blame when it ends.

A variant that crashes or hangs takes the process with it. It is named, and the others go on in
another process; what it was asked to do is done again there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Generic

from kernel_smith.evaluation.judge.compiling.source import Maker
from kernel_smith.evaluation.judge.platform.base import Platform
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.participant import CANDIDATE, ParticipantT
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.records import Candidate, Limits, Reason, Workload

_ENDING = ("timeout", "protocol")  # for which a process is killed, though it may take a moment
PARENT = ""
"""The name of the program; variants have others."""


class _ProcessEnded(Exception):
    """A variant took the process with it, and was named."""


class Cohort(Generic[ParticipantT]):
    """`sources` of the variants by name. Their kernels are compiled, as far as they can be."""

    def __init__(
        self,
        platform: Platform[ParticipantT],
        bench: Bench[ParticipantT],
        parent: Candidate,
        sources: Mapping[str, str],
        compiler: Maker,
        limits: Limits,
    ) -> None:
        self._platform = platform
        self._bench = bench
        self._parent = parent
        self._sources = sources
        self._compiler = compiler
        self._limits = limits
        self._process: ParticipantT | None = None
        self.members = list(sources)
        """The variants that take part, by name."""
        self.reasons: dict[str, Reason] = {}
        """What was wrong with those that do not, where something was."""

    def visit(self, workload: Workload, calls: int, act: Callable[[ParticipantT], None]) -> None:
        """Have the process enter a workload and do something there, from the beginning after each
        variant that ended it. Raises `ChildFailed` where the program itself fails."""
        while True:
            try:
                process = self._living()
                process.program = PARENT
                self._bench.enter(process, workload, calls, timed=True)
                act(process)
                process.unbind()
                process.release()
            except _ProcessEnded:
                continue
            return

    @contextlib.contextmanager
    def calling(self, name: str, *, loading: bool = False) -> Iterator[None]:
        """Turn to one of the programs; what fails meanwhile is its fault."""
        process = self._process
        assert process is not None
        process.program = name
        self._compiler.rejection = None
        try:
            yield
        except ChildFailed as failure:
            if name == PARENT:
                raise
            seen = Rejected.from_failure(failure, loading=loading)
            self.drop(name, (self._compiler.rejection or seen).reason)
            if self._is_of_no_more_use(process, failure, loading=loading):
                self.end()
                raise _ProcessEnded from None

    def _is_of_no_more_use(
        self, process: ParticipantT, failure: ChildFailed, *, loading: bool
    ) -> bool:
        """On a GPU an exception may be an illegal access, after which every call fails."""
        spoilt = self._platform.is_gpu and not loading and failure.kind == "exception"
        return spoilt or failure.kind in _ENDING or not process.child.alive()

    def drop(self, name: str, reason: Reason) -> None:
        """Let a variant take part no longer."""
        self.members.remove(name)
        self.reasons[name] = reason

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._platform.end(self._process)
            self._process = None

    def _living(self) -> ParticipantT:
        """The process, with all programs that take part."""
        if self._process is not None:
            return self._process
        platform, compiler = self._platform, self._compiler
        process = platform.launch(
            CANDIDATE, compiler.armed, compiler.provide, self._limits, self._bench.largest()
        )
        self._process = process
        process.observe(platform.place.timed)
        manner = platform.candidate_manner(self._bench.task, disarmed=False, interpreted=False)
        threads = len(platform.place.timed)
        process.load(self._parent.source, self._parent.name, "ModelNew", threads, **manner)
        for name in list(self.members):
            with self.calling(name, loading=True):
                process.add(name, self._sources[name], f"variant_{name}.py")
        return process
