"""An option in numbers: what is edited, the text around it, what becomes of the text, and the
program as a whole.

Nothing here is parsed: the texts are read by patterns, because the numbers are for a policy that
is fitted to them, and the judge has the last word anyway.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from kernel_smith.proposers.chooser.options import Menu, Option
from kernel_smith.records import Evaluation

Features = dict[str, float]
"""Numbers by name; one that is missing is 0."""

_LONGEST_STATEMENT = 3000
_PATTERNS = {
    name: re.compile(pattern)
    for name, pattern in {
        "loops": r"\bfor \(",
        "loads": r"\w\[",
        "sums": r"[+*-]=",
        "doubles": r"\bdouble\b",
        "casts": r"static_cast",
        "exponentials": r"\b(?:std::)?(?:exp|tanh|erf|log|pow)f?\(",
        "roots": r"sqrt",
        "divisions": r" [/%] ",
        "branches": r"\bif \(| \? ",
        "extremes": r"\b(?:max|min|fmaxf?|fminf?)\b",
        "simd": r"omp simd",
        "unrolled": r"GCC unroll",
        "restrict": r"__restrict__",
        "blocks": r"_(?:block|tile)\b",
        "bounds": r"< \d+;",
    }.items()
}
_BRACES = re.compile(r"\bfor \([^{};]*;[^{};]*;[^{}]*?\) \{|[{}]")
_LOOP = re.compile(r"\bfor \((?:const )?[\w:]+ (\w+) = ")
_NUMBER = re.compile(r"\d+")
_ORDINAL = re.compile(r"no\. (\d+)")


@dataclass(frozen=True)
class Facts:
    """What is known of the parent beside its text."""

    speedup: float
    machine: str

    @classmethod
    def of(cls, evaluation: Evaluation) -> Facts:
        """Read them from a parent's evaluation."""
        timing = evaluation.timing
        return cls(timing.speedup.value if timing else 1.0, evaluation.environment.machine)


WHOLE = ("all:", "speed", "x86", "length")
"""How the numbers of a program begin, which are the same for all its options."""


def features_of(menu: Menu, facts: Facts) -> list[Features]:
    """Return the numbers of each option, whichever others there are, in the menu's order."""
    source = menu.parent.source
    before = _found_in(source)
    whole = _counts("all", before) | {
        "speed": math.log(max(facts.speedup, 1e-3)),
        "x86": float(facts.machine in ("x86_64", "AMD64")),
        "length": math.log(len(source)),
    }
    return [whole | _own(option, source, before) for option in menu.options]


def _own(option: Option, source: str, before: dict[str, int]) -> Features:
    changed = option.program.source
    first = _alike(source, changed)
    rest = _alike(source[first:][::-1], changed[first:][::-1])
    here = source[first : max(len(source) - rest, _end_of_statement(source, first))]
    choice = _NUMBER.search(option.site.choice)
    ordinal = _ORDINAL.search(option.site.place)
    own = {
        f"edit={option.edit.name}": 1.0,
        "choice": math.log2(int(choice[0])) if choice and int(choice[0]) else 0.0,
        "ordinal": float(ordinal[1]) if ordinal else 1.0,
        "growth": math.log(len(changed) / len(source)),
        "depth": float(_loops_around(source, first)),
    }
    return (
        own
        | _counts("here", _found_in(here))
        | _strides(here)
        | _changes(before, _found_in(changed))
    )


def _alike(one: str, other: str) -> int:
    """With how many characters both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _found_in(text: str) -> dict[str, int]:
    return {name: len(pattern.findall(text)) for name, pattern in _PATTERNS.items()}


def _counts(where: str, found: dict[str, int]) -> Features:
    return {f"{where}:{name}": math.log1p(count) for name, count in found.items() if count}


def _changes(before: dict[str, int], after: dict[str, int]) -> Features:
    """How many more or fewer of each there are after the edit."""
    more = {name: after[name] - before[name] for name in before}
    return {
        f"more:{name}": math.copysign(math.log1p(abs(count)), count)
        for name, count in more.items()
        if count
    }


def _loops_around(source: str, place: int) -> int:
    """Tell how many loops with a block are open at a place in the text."""
    opened: list[bool] = []
    for found in _BRACES.finditer(source, 0, place):
        if found[0] != "}":
            opened.append(found[0] != "{")
        elif opened:
            opened.pop()
    return sum(opened)


def _strides(here: str) -> Features:
    """Tell how the first loop's variable is used: as the last part of an index, or times
    something."""
    loop = _LOOP.search(here)
    if loop is None:
        return {}
    name = re.escape(loop[1])
    unit = len(re.findall(rf"(?:\[|\+ ){name}\]", here))
    strided = len(re.findall(rf"\b{name} \* |\* {name}\b", here))
    return {"unit": math.log1p(unit), "strided": math.log1p(strided), "is loop": 1.0}


def _end_of_statement(text: str, start: int) -> int:
    """Tell where the block or statement ends that begins here, by its brackets."""
    depth = 0
    for index in range(start, min(start + _LONGEST_STATEMENT, len(text))):
        character = text[index]
        depth += (character in "({[") - (character in ")}]")
        if depth < 0 or (depth == 0 and character in ";}"):
            return index + 1
    return min(start + _LONGEST_STATEMENT, len(text))
