"""What a method of search is: it says what is asked next, of whom, and with what in hand.

A strategy does no input or output, starts no threads and looks at no clock. What it knows follows
from the events of the run, so a run that is resumed rebuilds it by letting it hear them again. The
loop does all else: it keeps workers and lanes busy, drops known programs, watches the budget,
writes events down, measures bests again, and confirms the winner.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from kernel_smith.records import Event, Label, Record, Section

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState


class Exhausted(Exception):
    """The method has nothing more to ask for; the text says why."""


class Ask(Record):
    """What one worker is to do."""

    worker: str
    parent: str | None = Field(default=None, description="a hash; null: write a first program")
    context: tuple[Section, ...] = ()
    label: Label = Field(default_factory=dict, description="comes back with what came of it")


class Strategy(Protocol):
    """Called from one thread."""

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        """Return what is to be asked now; None to wait for what is under way. Raises `Exhausted`.

        `free` names the workers that can take an ask, one at least; while there is no program yet,
        those of them that can write a first one. Whatever is drawn at random is drawn from `rng`.
        """

    def hear(self, event: Event, state: RunState) -> None:
        """Take an event in; `state` has taken it in already."""
