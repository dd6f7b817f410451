"""One `extern "C"` function, as a caller needs to know it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CType = type[Any]
"""A scalar class of `ctypes`; the standard library's own base class for them is private."""


@dataclass(frozen=True)
class Parameter:
    """One parameter; `ctype` is None where its type cannot be passed from Python.

    Of a pointer, `points_to` is the type of what it points to, as it is written (`float`), and
    `elements` how many of them an array parameter asks for (`float x[4]`), 0 if it does not say.
    """

    name: str
    ctype: CType | None
    is_pointer: bool
    points_to: str = field(default="", compare=False)
    elements: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Prototype:
    """One function; `returns` is None for void. `unsupported` lists what stops a call.

    `takes_stream` says that a stream comes after the parameters, which the caller does not pass.
    """

    name: str
    returns: CType | None
    parameters: tuple[Parameter, ...]
    text: str
    unsupported: tuple[str, ...] = ()
    takes_stream: bool = False
