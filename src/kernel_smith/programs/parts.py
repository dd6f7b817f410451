"""A program's file as its parts: what each defines, what it uses, what all of them need."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kernel_smith.programs.parsing import parse_python

MODEL = "ModelNew"
IMPORTS = (ast.Import, ast.ImportFrom)
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class Part:
    """A statement of the file, with the comments and blank lines before it."""

    text: str
    node: ast.stmt

    @cached_property
    def used(self) -> frozenset[str]:
        nodes = ast.walk(self.node)
        return frozenset(node.id for node in nodes if isinstance(node, ast.Name))

    @cached_property
    def attributes(self) -> frozenset[str]:
        nodes = ast.walk(self.node)
        return frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute))

    @cached_property
    def meaning(self) -> str:
        return ast.dump(self.node)

    @property
    def constant(self) -> str | None:
        """The text that it gives a name, such as a kernel's, if it does that."""
        match self.node:
            case ast.Assign(value=ast.Constant(value=str(text))):
                return text
        return None

    @property
    def names(self) -> list[str]:
        """What it defines for others."""
        match self.node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                return [name]
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                return [name]
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                return [(each.asname or each.name).partition(".")[0] for each in aliases]
        return []

    def renamed(self, names: Mapping[str, str]) -> str | None:
        """Its text with other names; None where one of them is also a parameter's."""
        (node,) = ast.parse(self.text).body
        found: list[tuple[int, int, str]] = []
        for each in ast.walk(node):
            if isinstance(each, ast.arg | ast.Global) and names.keys() & _bound(each):
                return None
            if isinstance(each, ast.Name) and each.id in names:
                found.append((each.lineno, each.col_offset, each.id))
        text = _spliced(self.text, found, names)
        if isinstance(node, _DEFINITIONS) and node.name in names:
            return re.sub(rf"\b(def|class) {node.name}\b", rf"\1 {names[node.name]}", text, count=1)
        return text


@dataclass(frozen=True, eq=False)
class Module:
    parts: list[Part]
    tail: str

    @cached_property
    def parts_by_name(self) -> dict[str, Part]:
        return {name: part for part in self.parts for name in part.names}

    def needed_by(self, names: Iterable[str], without: Container[str] = ()) -> list[Part]:
        """Return what defines these names and all that they use, in the order of the file;
        `without` these others, and what they alone use."""
        found: set[int] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            part = self.parts_by_name.get(name) if name not in without else None
            if part is not None and id(part) not in found:
                found.add(id(part))
                waiting += part.used
        return [part for part in self.parts if id(part) in found]

    def is_same(self, name: str, other: Module) -> bool:
        """Does a name mean the same in both, with all that it needs?"""
        mine, theirs = self.needed_by([name]), other.needed_by([name])
        return [part.meaning for part in mine] == [part.meaning for part in theirs]


@lru_cache(maxsize=16)
def read_module(source: str) -> Module | None:
    """None where it is no Python, or a name is defined twice."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = source.splitlines(keepends=True)
    parts, at = [], 0
    for node in tree.body:
        end = node.end_lineno or node.lineno
        parts.append(Part("".join(lines[at:end]), node))
        at = end
    names = [name for part in parts for name in part.names if not isinstance(part.node, IMPORTS)]
    if len(set(names)) < len(names) or any(part.text == "" for part in parts):
        return None
    return Module(parts, "".join(lines[at:]))


def _bound(node: ast.arg | ast.Global) -> set[str]:
    return {node.arg} if isinstance(node, ast.arg) else set(node.names)


def _spliced(text: str, places: list[tuple[int, int, str]], names: Mapping[str, str]) -> str:
    """`places` are lines, columns in bytes, and the names that stand there."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for line, column, name in sorted(places, reverse=True):
        before, after = lines[line - 1][:column], lines[line - 1][column + len(name.encode()) :]
        lines[line - 1] = before + names[name].encode() + after
    return b"".join(lines).decode()
