"""What an edit is: a name, a sentence, the places where it applies, and what it does there.

A place is found together with the text that goes there, so applying an edit is nothing but
replacing text. Where an edit has a choice, such as a factor, every choice is a site of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    """Bytes `start` to `end` of a text, in UTF-8, become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Site:
    """One way to apply an edit. `part` counts the texts of the candidate that can be edited."""

    place: str
    splices: tuple[Splice, ...]
    choice: str = ""
    part: int = 0

    def __str__(self) -> str:
        return f"{self.place} ({self.choice})" if self.choice else self.place


@dataclass(frozen=True)
class Machine:
    """What is known of where candidates are timed; None: nothing is."""

    cores: int | None = None
    multiprocessors: int | None = None


UNKNOWN = Machine()


@dataclass(frozen=True)
class Edit:
    """A structural change of a candidate that should leave its results as they are."""

    name: str
    backends: tuple[str, ...]
    sentence: str
    find: Callable[[str, Machine], list[Site]]
    replace: Callable[[str, Site], str]

    def sites(self, source: str, machine: Machine = UNKNOWN) -> list[Site]:
        """Where and how the edit applies to a candidate; nowhere if it cannot be read, or if this
        machine has no use for it."""
        return self.find(source, machine)

    def apply(self, source: str, site: Site) -> str:
        """The candidate with the edit applied. The site must come from the same source."""
        return self.replace(source, site)


def splice(text: str, splices: Iterable[Splice]) -> str:
    """The text after all replacements, which must not overlap."""
    data = text.encode()
    for piece in sorted(splices, key=lambda piece: (piece.start, piece.end), reverse=True):
        data = data[: piece.start] + piece.text.encode() + data[piece.end :]
    return data.decode()
