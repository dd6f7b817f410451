"""Tunable numbers in C++ text: named constants, OpenMP clauses, unroll pragmas.

Comments and strings are blanked first, at equal length, so that patterns see code alone and the
positions stay right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_smith.programs.branches import ANY_BRANCH, Defined, without_dead_branches
from kernel_smith.proposers.tuner.numbers import constant_role, is_for_speed
from kernel_smith.proposers.tuner.space import Role, Value

_NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|R\"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)\""
    r"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'",
    re.S,
)
_CONSTANTS = re.compile(
    r"\b(?:(?:static|inline|constexpr|const)\s+)*\b(?:constexpr|const)\s+(?:(?:static|inline)\s+)*"
    r"(?:(?:unsigned|signed|short|long|int|auto)\b\s*|(?:std::)?(?:u?int\d+_t|size_t|ptrdiff_t)\s+)+"
    r"(?P<rest>(?:[^;(){}]|\{\s*\d+\s*\})*);"
)
_DECLARATOR = re.compile(r"\s*(?P<name>\w+)\s*(?:=\s*|\{\s*)(?P<number>\d+)(?:[uUlL]*)\s*\}?\s*")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+(?P<number>\d+)[ \t]*$", re.M)
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma\b(?:\\\r?\n|[^\n])*", re.M)
_SCHEDULE = re.compile(
    r"\bschedule\s*\(\s*(?:\w+\s*:\s*)?(?P<word>static|dynamic|guided)\s*(?:,\s*(?P<number>\d+)\s*)?\)"
)
SCHEDULES = ("static", "dynamic", "guided")
_CLAUSES: tuple[tuple[str, Role, re.Pattern[str]], ...] = (
    ("num_threads", Role.THREADS, re.compile(r"\bnum_threads\s*\(\s*(?P<number>\d+)\s*\)")),
    ("collapse", Role.COLLAPSE, re.compile(r"\bcollapse\s*\(\s*(?P<number>\d+)\s*\)")),
    ("simdlen", Role.LANES, re.compile(r"\bsimdlen\s*\(\s*(?P<number>\d+)\s*\)")),
    ("aligned", Role.ALIGNMENT, re.compile(r"\baligned\s*\([^():]*:\s*(?P<number>\d+)\s*\)")),
    (
        "unroll",
        Role.UNROLL,
        re.compile(r"pragma\s+(?:GCC\s+|clang\s+)?unroll\s*\(?\s*(?P<number>\d+)"),
    ),
)


@dataclass(frozen=True)
class Number:
    """One number or word that may vary, at a span of the text it was found in."""

    name: str
    role: Role
    current: Value
    begin: int
    end: int


def looks_like_cpp(text: str) -> bool:
    return "\n" in text and any(
        mark in text for mark in ("#include", 'extern "C"', "#pragma", "constexpr ")
    )


def find_cpp_numbers(
    text: str, declared: frozenset[str] = frozenset(), defined: Defined = ANY_BRANCH
) -> list[Number]:
    """Find the numbers of a C++ text, in its order, but not those in branches of the preprocessor
    that are not taken. Constants named in `declared` are always taken."""
    code = _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    code = without_dead_branches(code, defined)
    found = [*_constants(code, declared), *_pragmas(code)]
    return sorted(found, key=lambda number: number.begin)


def _constants(code: str, declared: frozenset[str]) -> Iterator[Number]:
    matches = list(_DEFINE.finditer(code))
    for statement in _CONSTANTS.finditer(code):
        begin = statement.start("rest")
        for part in statement["rest"].split(","):
            if match := _DECLARATOR.fullmatch(code, begin, begin + len(part)):
                matches.append(match)
            begin += len(part) + 1
    for match in matches:
        name, digits = match["name"], match["number"]
        # A leading zero makes an octal number.
        if digits[0] != "0" and (name in declared or is_for_speed(name, int(digits))):
            yield Number(name, constant_role(name), int(digits), *match.span("number"))


def _pragmas(code: str) -> Iterator[Number]:
    for pragma in _PRAGMA.finditer(code):
        span = pragma.span()
        for match in _SCHEDULE.finditer(code, *span):
            yield Number("schedule", Role.WORD, match["word"], *match.span("word"))
            if match["number"]:
                yield Number("schedule_chunk", Role.CHUNK, *_integer(match))
        for name, role, pattern in _CLAUSES:
            for match in pattern.finditer(code, *span):
                if match["number"][0] != "0":
                    yield Number(name, role, *_integer(match))


def _integer(match: re.Match[str]) -> tuple[int, int, int]:
    return int(match["number"]), *match.span("number")
