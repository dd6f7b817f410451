"""Collects the numbers of a source while it is searched, and makes a `Space` of them.

One number may stand in several places: a block size at a launch and again in its grid. `couple`
adds a place to a number, `merge` makes two numbers one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kernel_smith.proposers.tuner import numbers
from kernel_smith.proposers.tuner.space import (
    Binding,
    Kind,
    Place,
    Role,
    Space,
    Tunable,
    Value,
    Values,
)

Span = tuple[int, int]


@dataclass(eq=False)
class Entry:
    name: str
    role: Role
    current: Value
    choices: tuple[Value, ...] = ()
    spans: list[Span] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)


@dataclass(frozen=True)
class Listed:
    """A list of configurations: its span, the first one's text around its values, the others."""

    span: Span
    pieces: tuple[str, ...]
    entries: tuple[Entry, ...]
    others: tuple[tuple[Value, ...], ...]


class Draft:
    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lists: dict[Span, Listed] = {}
        self._at: dict[Span, Entry] = {}

    def add(self, span: Span, entry: Entry, *bindings: Binding) -> Entry:
        """Take the number at a span. A known one only gets the new bindings."""
        known = self._at.setdefault(span, entry)
        if known is entry:
            entry.spans.append(span)
            self._entries.append(entry)
        known.bindings += bindings
        return known

    def add_list(self, listed: Listed) -> None:
        known = self._lists.setdefault(listed.span, listed)
        if known is listed:
            self._entries += listed.entries
            return
        for entry, other in zip(known.entries, listed.entries, strict=True):
            entry.bindings += other.bindings

    def knows(self, span: Span) -> bool:
        return span in self._at or any(
            begin <= span[0] and span[1] <= end for begin, end in self._lists
        )

    def couple(self, entry: Entry, span: Span) -> None:
        """The same number stands here, too."""
        self._at[span] = entry
        entry.spans.append(span)

    def merge(self, entries: list[Entry]) -> Entry:
        """Make numbers of the same value one; it keeps the name of the first."""
        first, *rest = dict.fromkeys(entries)
        for entry in rest:
            first.spans += entry.spans
            first.bindings += entry.bindings
            first.choices = first.choices or entry.choices
            self._at.update(dict.fromkeys(entry.spans, first))
            self._entries.remove(entry)
        return first

    def entries(self) -> list[Entry]:
        """Return those that stand in places of their own, in the order they were found."""
        return [entry for entry in self._entries if entry.spans]

    def space(self, source: str, declared: dict[str, tuple[int, ...]]) -> Space:
        names = self._unique_names()
        tunables = [_tunable(entry, names[entry], declared) for entry in self._entries]
        places = [
            Place(begin, end, (names[entry],))
            for entry in self._entries
            for begin, end in entry.spans
        ]
        alternatives: list[Values] = []
        for listed in self._lists.values():
            keys = tuple(names[entry] for entry in listed.entries)
            places.append(Place(*listed.span, keys, listed.pieces))
            alternatives += [dict(zip(keys, other, strict=True)) for other in listed.others]
        places.sort(key=lambda place: place.begin)
        return Space(source, tuple(tunables), tuple(places), tuple(alternatives))

    def _unique_names(self) -> dict[Entry, str]:
        seen: Counter[str] = Counter()
        names: dict[Entry, str] = {}
        for entry in sorted(self._entries, key=self._position):
            seen[entry.name] += 1
            count = seen[entry.name]
            names[entry] = entry.name if count == 1 else f"{entry.name}#{count}"
        return names

    def _position(self, entry: Entry) -> int:
        lists = [listed.span[0] for listed in self._lists.values() if entry in listed.entries]
        return min([span[0] for span in entry.spans] + lists)


def _tunable(entry: Entry, name: str, declared: dict[str, tuple[int, ...]]) -> Tunable:
    wanted: tuple[Value, ...] = declared.get(entry.name, ()) or entry.choices
    if entry.current not in wanted:
        wanted = (*wanted, entry.current)
    domain = wanted if len(wanted) > 1 else numbers.domain(entry.role, entry.current)
    kind = numbers.kind(domain)
    if kind is not Kind.CHOICE:
        domain = tuple(sorted(domain))
    return Tunable(name, kind, entry.role, entry.current, domain, tuple(entry.bindings))
