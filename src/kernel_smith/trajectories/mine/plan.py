"""How a mined class is made and called: constructor arguments, inputs and workloads.

A plan comes out of a process that ran mined code, so it is data to be checked: plain values, names
that are identifiers, and torch objects from a fixed list. Nothing in it is ever run as code.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from kernel_smith.records.base import Record
from kernel_smith.trajectories.mine.guesses import CODE

Symbol = Literal["batch", "length", "height", "width", "depth"]
Kind = Literal["float", "unit", "index", "mask", "pair", "size", "none"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,80}$")]
CodeName = Annotated[str, Field(pattern="^(" + "|".join(CODE) + ")$")]
Size = Annotated[int, Field(ge=1, le=1 << 24)]


class Input(Record):
    """One argument of `forward`."""

    kind: Kind
    shape: tuple[Symbol | Size, ...] = Field(default=(), max_length=6)
    high: Size = 2
    """Of an index: one more than the largest."""


class Plan(Record):
    init: dict[Name, JsonValue] = Field(default_factory=dict)
    code: dict[Name, CodeName] = Field(default_factory=dict)
    config: dict[Name, JsonValue] | None = None
    """Fields of an argument `config`; None: there is no such argument."""
    unset: tuple[Annotated[str, Field(max_length=200)], ...] = Field(default=(), max_length=40)
    """Parameters that the constructor leaves as memory happens to be."""
    constant: bool = False
    """Whether parameters are constant, and would hide what is done with them."""
    inputs: tuple[Input, ...] = Field(min_length=1, max_length=8)
    workloads: dict[Name, dict[Symbol, Size]] = Field(default_factory=dict)
