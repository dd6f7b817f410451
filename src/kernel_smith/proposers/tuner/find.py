"""Finds the numbers of a candidate that decide how fast it is, and not what it computes.

`find(source)` reads the file without running it. Beside what `numbers` describes, a candidate may
declare its numbers itself, at module level:

    TUNABLES = {"BLOCK": 128}             the code uses TUNABLES["BLOCK"]
    TUNABLES = {"BLOCK": [64, 128, 256]}  what the constant BLOCK, wherever it stands, may become

`structure` is the source with the numbers blanked: what candidates share that differ in them alone.
"""

from __future__ import annotations

import ast
import re

from kernel_smith.programs.branches import ANY_BRANCH, Defined
from kernel_smith.programs.parsing import parse_python
from kernel_smith.proposers.tuner.cpp_numbers import SCHEDULES, find_cpp_numbers, looks_like_cpp
from kernel_smith.proposers.tuner.draft import Draft, Entry
from kernel_smith.proposers.tuner.numbers import (
    constant_role,
    has_speed_word,
    is_for_speed,
    words,
)
from kernel_smith.proposers.tuner.positions import Positions
from kernel_smith.proposers.tuner.scope import Scopes, integer, pairs
from kernel_smith.proposers.tuner.space import Role, Space, Value
from kernel_smith.proposers.tuner.triton_numbers import TritonNumbers
from kernel_smith.records import content_hash

_MACRO = re.compile(r"-D(?P<name>\w+)=(?P<number>[1-9]\d*)")
# Flags that change how a loop is compiled and never what it computes.
_FLAGS: tuple[tuple[str, tuple[Value, ...]], ...] = (
    ("optimise", ("-O2", "-O3")),
    ("unroll_loops", ("-funroll-loops", "-fno-unroll-loops")),
    ("peel_loops", ("-fpeel-loops", "-fno-peel-loops")),
    ("vector_width", tuple(f"-mprefer-vector-width={bits}" for bits in (128, 256, 512))),
)


def find(source: str, defined: Defined = ANY_BRANCH) -> Space:
    """Find the space of a candidate's source; an empty one if it is no Python or has no such
    numbers. `defined`: what is known of the compiler's macros where it is judged."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Space(source, (), ())
    draft = Draft()
    positions = Positions(source)
    declared = _declared(tree, positions, draft)
    names = frozenset(declared)
    TritonNumbers(tree, positions, draft, names).collect()
    _python_constants(tree, positions, draft, names)
    from_python = draft.entries()
    _flags(tree, positions, draft, names)
    _cpp(tree, positions, draft, names, defined)
    _join_namesakes(draft, from_python)
    return draft.space(source, declared)


def structure(space: Space) -> str:
    """Identifies the source with its numbers blanked."""
    parts, at = [], 0
    for place in space.places:
        parts += [space.source[at : place.begin], *place.pieces, *place.names]
        at = place.end
    return content_hash(*parts, space.source[at:])


def _declared(tree: ast.Module, positions: Positions, draft: Draft) -> dict[str, tuple[int, ...]]:
    """Adds the numbers of `TUNABLES`; returns the lists in it, by name."""
    lists: dict[str, tuple[int, ...]] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Dict):
            continue
        if not any(isinstance(t, ast.Name) and t.id == "TUNABLES" for t in node.targets):
            continue
        for key, value in zip(node.value.keys, node.value.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                continue
            if isinstance(value, ast.List | ast.Tuple):
                found = [integer(element) for element in value.elts]
                lists[key.value] = tuple(number for number in found if number is not None)
            elif (number := integer(value)) is not None and number > 0:
                entry = Entry(key.value, constant_role(key.value), number)
                draft.add(positions.span(value), entry)
    return lists


def _python_constants(
    tree: ast.Module, positions: Positions, draft: Draft, declared: frozenset[str]
) -> None:
    """Module constants that are named for speed, or that a -D flag hands to the kernel."""
    scopes = Scopes(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and scopes.parent(node) is tree:
            bound = (pair for target in node.targets for pair in pairs(target, node.value))
            for name, value in bound:
                if has_speed_word(name.id) or name.id in declared:
                    _take(name.id, value, positions, draft)
        elif isinstance(node, ast.JoinedStr) and _defines_macro(node):
            for part in node.values:
                if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
                    _take(part.value.id, scopes.value(part.value), positions, draft)


def _defines_macro(node: ast.JoinedStr) -> bool:
    first = node.values[0] if node.values else None
    return isinstance(first, ast.Constant) and str(first.value).startswith("-D")


def _take(name: str, node: ast.expr, positions: Positions, draft: Draft) -> None:
    value = integer(node)
    if value is not None and value > 0:
        draft.add(positions.span(node), Entry(name, constant_role(name), value))


def _strings(tree: ast.Module) -> list[ast.Constant]:
    """Return the string literals of a file; parts of f-strings have no places of their own."""
    inside = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside
    ]


def _flags(tree: ast.Module, positions: Positions, draft: Draft, declared: frozenset[str]) -> None:
    for node in _strings(tree):
        begin = positions.inside(node)
        if begin is None or not str(node.value).startswith("-"):
            continue
        text = str(node.value)
        for name, choices in _FLAGS:
            if text in choices:
                entry = Entry(name, Role.WORD, text, choices)
                draft.add((begin, begin + len(text)), entry)
        match = _MACRO.fullmatch(text)
        if match and (
            match["name"] in declared or is_for_speed(match["name"], int(match["number"]))
        ):
            entry = Entry(match["name"], constant_role(match["name"]), int(match["number"]))
            draft.add((begin + match.start("number"), begin + match.end("number")), entry)


def _cpp(
    tree: ast.Module,
    positions: Positions,
    draft: Draft,
    declared: frozenset[str],
    defined: Defined,
) -> None:
    for node in _strings(tree):
        text = str(node.value)
        begin = positions.inside(node) if looks_like_cpp(text) else None
        if begin is None:
            continue
        for number in find_cpp_numbers(text, declared, defined):
            choices = SCHEDULES if number.role is Role.WORD else ()
            entry = Entry(number.name, number.role, number.current, choices)
            draft.add((begin + number.begin, begin + number.end), entry)


def _join_namesakes(draft: Draft, from_python: list[Entry]) -> None:
    """A constant that Python and C++ both know by one name (`BLOCK`, `kBlock`) is one number."""
    by_name: dict[tuple[tuple[str, ...], Value], list[Entry]] = {}
    for entry in draft.entries():
        by_name.setdefault((words(entry.name), entry.current), []).append(entry)
    for entries in by_name.values():
        if any(e in from_python for e in entries) and any(e not in from_python for e in entries):
            draft.merge(entries)
