"""The words of tuning: a number that may vary (`Tunable`) and where it stands (`Place`).

A place is a span of the source and the text to put there: fixed pieces with values between them.
Most places are a bare number. The list of an autotuner's configurations is one place, which becomes
a list of one configuration as soon as one of its values changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Value = int | str
Values = dict[str, Value]


class Kind(StrEnum):
    LOG2 = "log2"
    INTEGER = "integer"
    CHOICE = "choice"


class Role(StrEnum):
    """What a number is for; decides the values it may take and whether they fit."""

    TILE = "tile"
    WARPS = "warps"
    STAGES = "stages"
    UNROLL = "unroll"
    THREADS = "threads"
    CHUNK = "chunk"
    LANES = "lanes"
    COLLAPSE = "collapse"
    ALIGNMENT = "alignment"
    WORD = "word"


@dataclass(frozen=True)
class Binding:
    """A parameter of a Triton kernel that takes its value here. `site` tells launches apart."""

    site: int
    kernel: str
    parameter: str


@dataclass(frozen=True)
class Place:
    """`source[begin:end]` is replaced by pieces[0] value[0] pieces[1] value[1] ... pieces[-1]."""

    begin: int
    end: int
    names: tuple[str, ...]
    pieces: tuple[str, ...] = ("", "")

    def text(self, values: Values) -> str:
        parts = [self.pieces[0]]
        for name, piece in zip(self.names, self.pieces[1:], strict=True):
            parts += [str(values[name]), piece]
        return "".join(parts)


@dataclass(frozen=True)
class Tunable:
    name: str
    kind: Kind
    role: Role
    current: Value
    domain: tuple[Value, ...]
    bindings: tuple[Binding, ...] = ()


@dataclass(frozen=True)
class Space:
    """All tunables of one source, and the places that hold their values."""

    source: str
    tunables: tuple[Tunable, ...]
    places: tuple[Place, ...]
    # Other values that the source itself names: the further configurations of an autotuner.
    alternatives: tuple[Values, ...] = ()

    @property
    def current(self) -> Values:
        return {tunable.name: tunable.current for tunable in self.tunables}
