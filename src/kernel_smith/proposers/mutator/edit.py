"""What an edit is: a name, a sentence, the places where it applies, and what it does there.

A place is found together with the text that goes there, so applying an edit is nothing but
replacing text. Where an edit has a choice, such as a factor, every choice is a site of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    """Bytes `start` to `end` of a text, in UTF-8, become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Site:
    """One way to apply an edit. `part` counts the texts of the candidate that can be edited,
    `places` those that this one site changes alike, such as one in each workload's kernel."""

    place: str
    splices: tuple[Splice, ...]
    choice: str = ""
    part: int = 0
    places: int = 1

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
    """A structural change of a candidate that should leave its results as they are. `told`: what
    the same is called in recorded series of programs, from which it was learnt."""

    name: str
    backends: tuple[str, ...]
    sentence: str
    find: Callable[[str, Machine], list[Site]]
    replace: Callable[[str, Site], str]
    told: tuple[str, ...] = ()

    def sites(self, source: str, machine: Machine = UNKNOWN) -> list[Site]:
        """Tell where and how the edit applies to a candidate; nowhere if it cannot be read, or
        if this machine has no use for it."""
        return self.find(source, machine)

    def apply(self, source: str, site: Site) -> str:
        """Return the candidate with the edit applied. The site must come from the same source."""
        return self.replace(source, site)


def splice(text: str, splices: Iterable[Splice]) -> str:
    """Return the text after all replacements, which must not overlap."""
    data = text.encode()
    for piece in sorted(splices, key=lambda piece: (piece.start, piece.end), reverse=True):
        data = data[: piece.start] + piece.text.encode() + data[piece.end :]
    return data.decode()


def everywhere(sites: Sequence[Site], most: int) -> list[Site]:
    """Return the sites, after one for each choice that takes all of them that do not overlap.

    A candidate has a kernel for each workload, and to change one at a time takes an evaluation
    each. `most`: no text is to be changed in more places, or it grows beyond reason.
    """
    combined = []
    for choice in dict.fromkeys(site.choice for site in sites):
        taken: list[Site] = []
        for site in sites:
            if site.choice == choice and not any(_overlap(site, other) for other in taken):
                taken.append(site)
        if 1 < len(taken) <= most:
            splices = tuple(piece for site in taken for piece in site.splices)
            place = f"all {len(taken)} places"
            combined.append(Site(place, splices, choice, taken[0].part, len(taken)))
    return [*combined, *sites]


def _overlap(one: Site, other: Site) -> bool:
    return any(
        a.start == b.start or (a.start < b.end and b.start < a.end)
        for a in one.splices
        for b in other.splices
    )
