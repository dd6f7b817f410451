"""A method that another package offers: what goes wrong in it is for its author to mend."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.errors import BadInput, UserError
from kernel_smith.records import Event, RunConfig
from kernel_smith.search.base import Ask, Exhausted, Strategy

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState


class MethodFailed(BadInput):
    """A method of another package that raised, or asked for what cannot be, in a run."""


class Offered:
    """Names the method, and the line of its package, where it fails."""

    def __init__(self, config: RunConfig, make: Callable[[RunConfig], Strategy]) -> None:
        self.name = config.method
        self._package = make.__module__.partition(".")[0]
        try:
            self.method = make(config)
        except UserError:
            raise
        except Exception as error:
            what = f"method {self.name} cannot be made: {self._said(error)}"
            remedy = "correct that line, or the settings it is given; see docs/new-method.md"
            raise BadInput(what, hint=remedy) from error

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        with self._blamed("next"):
            ask = self.method.next(state, free, rng)
        if ask is not None:
            self._check(ask, state, free)
        return ask

    def hear(self, event: Event, state: RunState) -> None:
        with self._blamed(f"hear({type(event).__name__})"):
            self.method.hear(event, state)

    def _check(self, ask: Ask, state: RunState, free: Sequence[str]) -> None:
        if not isinstance(ask, Ask):
            raise self._failed(f"answers with a {type(ask).__name__}", "answer with an Ask or None")
        if ask.worker not in free:
            what = f"asks {ask.worker!r}, who is not free"
            raise self._failed(what, f"ask one of: {', '.join(free)}")
        if ask.parent is not None and ask.parent not in state.evaluated:
            what = f"has {ask.parent!r} changed, which is no program of the run"
            raise self._failed(what, "name one by its hash, such as state.best has")

    @contextlib.contextmanager
    def _blamed(self, call: str) -> Iterator[None]:
        try:
            yield
        except (Exhausted, UserError):
            raise
        except Exception as error:
            raise self._failed(f"failed in {call}: {self._said(error)}", "correct it") from error

    def _failed(self, what: str, remedy: str) -> MethodFailed:
        hint = f"{remedy}; kernel_smith.testing.method_suite tells more: see docs/new-method.md"
        return MethodFailed(f"method {self.name} {what}", hint=hint)

    def _said(self, error: Exception) -> str:
        """Name the error, and the last line of the package that it came through."""
        lines = [
            f" ({frame.f_code.co_filename}:{line})"
            for frame, line in traceback.walk_tb(error.__traceback__)
            if str(frame.f_globals.get("__name__")).partition(".")[0] == self._package
        ]
        return f"{type(error).__name__}: {error}{lines[-1] if lines else ''}"
