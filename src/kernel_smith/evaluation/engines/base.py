"""What an engine is: whoever needs evaluations asks one, and does not know which."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Protocol, runtime_checkable

from kernel_smith.records import Candidate, Evaluation, NsightKernel, Options, Sweep, Task


class Evaluator(Protocol):
    """The part of an engine that a loop or a dispatcher needs."""

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        """The evaluation, in the future; cancelling works until somebody has begun with it.

        `beside`: another candidate, such as its parent, that it is timed side by side with.
        """


@runtime_checkable
class Sweeper(Protocol):
    """An engine that can also try variants of an accepted program out, many at a time."""

    def sweep(
        self,
        task: Task,
        parent: Candidate,
        variants: Sequence[str],
        options: Options,
        seconds: float,
        /,
        *,
        everybody: bool = False,
    ) -> Future[Sweep]:
        """What became of the variants, in the future. It takes about so many seconds, and says
        nothing that a verdict may rest on.

        Who lies behind is timed no longer, since the fastest are wanted; with `everybody` each is,
        until its gain is known as closely as `options.sampling.target`, or is too small for that.
        """


@runtime_checkable
class Profiler(Protocol):
    """An engine that can also have a vendor's profiler look at an accepted program."""

    def counters(
        self, task: Task, candidate: Candidate, workload: str, /
    ) -> Future[tuple[NsightKernel, ...]]:
        """The kernels of one call with their counters, in the future. The program runs without a
        sandbox. The future may raise `UserError`, such as where there is no profiler."""


class Engine(Evaluator, Protocol):
    def capacity(self) -> int:
        """How many candidates are evaluated at once."""

    def health(self) -> dict[str, Any]:
        """Whether it is `ready` for more, and what else it can tell."""

    def close(self) -> None:
        """Finish what was begun; what still waits is cancelled."""
