"""What an engine is: whoever needs evaluations asks one, and does not know which."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from kernel_smith.records import Candidate, Evaluation, Options, Task


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


class Engine(Evaluator, Protocol):
    def capacity(self) -> int:
        """How many candidates are evaluated at once."""

    def health(self) -> dict[str, Any]:
        """Whether it is `ready` for more, and what else it can tell."""

    def close(self) -> None:
        """Finish what was begun; what still waits is cancelled."""
