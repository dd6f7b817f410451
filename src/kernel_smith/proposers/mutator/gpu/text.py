"""CUDA, MACA and HIP texts inside a candidate, as syntax trees of C++.

What these dialects add to C++ is masked by words of the same length before the text is parsed:
`__global__` reads `static`, and a launch `f<<<g, b>>>(x)` is a call of a call, `f(g, b)(x)`. So
every position in the tree is one in the text. `gpu_edit` makes an edit of a function that finds
sites in one text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from kernel_smith.proposers.mutator.cpp.text import (
    CppText,
    kernel_constants,
    parse,
    with_splices,
)
from kernel_smith.proposers.mutator.edit import Edit, Machine, Site

DIALECTS = ("cuda", "maca", "hip")

_STATIC = ("__global__", "__device__", "__host__", "__shared__", "__constant__")
_MASKS = dict.fromkeys(_STATIC, "static") | {
    "__forceinline__": "inline",
    "__noinline__": "",
    "<<<": "  (",
    ">>>": ")",
}
_MASKED = re.compile(
    r"""
      (?P<kept>   //[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' )
    | (?P<bounds> \b__launch_bounds__\s*\([^()]*\) )
    | (?P<word>   \b__(?:global|device|host|shared|constant|forceinline|noinline)__\b | <<< | >>> )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, eq=False)
class GpuText(CppText):
    """One text of a GPU dialect with its tree. Positions are bytes of the text itself."""

    dialect: str = "cuda"

    @property
    def wave(self) -> int:
        """How many threads run in step."""
        return 32 if self.dialect == "cuda" else 64

    def shuffled(self, value: str, lane_mask: str) -> str:
        """Return the value of the lane whose number differs by a mask."""
        if self.dialect == "hip":
            return f"__shfl_xor({value}, {lane_mask})"
        every_lane = "0xffffffffu" if self.wave == 32 else "0xffffffffffffffffull"
        return f"__shfl_xor_sync({every_lane}, {value}, {lane_mask})"


def parse_gpu(text: str, dialect: str) -> GpuText:
    return GpuText(text, parse(_MASKED.sub(_mask, text)).root, dialect)


def _mask(match: re.Match[str]) -> str:
    found = match.group()
    if match.group("kept"):
        return found
    # The lines of a text stay as they are, also inside of what is masked.
    shown = _MASKS.get(found, "")
    return shown + re.sub(r"[^\n]", " ", found[len(shown) :])


def gpu_edit(
    name: str, sentence: str, dialects: tuple[str, ...] = DIALECTS
) -> Callable[[Callable[[GpuText], Iterator[Site]]], Edit]:
    """Makes an edit of a function that finds the sites in one text."""

    def make(find_in: Callable[[GpuText], Iterator[Site]]) -> Edit:
        def find(source: str, machine: Machine) -> list[Site]:
            return [
                replace(site, part=part)
                for part, text in enumerate(gpu_texts(source))
                for site in find_in(text)
                if text.dialect in dialects
            ]

        return Edit(name, dialects, sentence, find, _replace)

    return make


def gpu_texts(source: str) -> tuple[GpuText, ...]:
    """Return the texts of a candidate that parse without an error."""
    return tuple(text for _, text in _whole(source))


@lru_cache(maxsize=64)
def _whole(source: str) -> tuple[tuple[ast.Constant, GpuText], ...]:
    found = [
        (constant, parse_gpu(str(constant.value), dialect))
        for dialect in DIALECTS
        for constant in kernel_constants(source, (dialect,))
    ]
    return tuple((constant, text) for constant, text in found if not text.root.has_error)


def _replace(source: str, site: Site) -> str:
    return with_splices(source, _whole(source)[site.part][0], site)
