"""One program out of two: a function of one, with all that it needs, in the place of the other's.

Programs that the framework's compiler wrote, and those that descend from them, have a function for
each workload (`run_WORKLOAD`). So of two of them, each faster on another workload, a third can be
made. Names that mean something else in both get a new one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kernel_smith.programs.merge_text import exported_functions, merged_text
from kernel_smith.programs.parsing import parse_python

_MODEL = "ModelNew"
_IMPORTS = (ast.Import, ast.ImportFrom)
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def workload_function(workload: str) -> str:
    """The name of the function that does one workload."""
    return "run_" + re.sub(r"\W", "_", workload)


def with_functions(host: str, donors: Mapping[str, str]) -> str | None:
    """Return a program with functions of others in the place of its own; None if that cannot be.

    `donors` has a source by the name of each function.
    """
    text: str | None = host
    for name, donor in donors.items():
        text = _with_function(text, donor, name) if text is not None else None
    return text


def has_function(source: str, name: str) -> bool:
    """Does a program have a function, or anything else, of this name?"""
    module = _read(source)
    return module is not None and name in module.parts_by_name


@dataclass(frozen=True, eq=False)
class _Part:
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
class _Module:
    parts: list[_Part]
    tail: str

    @cached_property
    def parts_by_name(self) -> dict[str, _Part]:
        return {name: part for part in self.parts for name in part.names}

    def needed_by(self, names: Iterable[str]) -> list[_Part]:
        """What defines these names and all that they use, in the order of the file."""
        found: set[int] = set()
        waiting = list(names)
        while waiting:
            part = self.parts_by_name.get(waiting.pop())
            if part is not None and id(part) not in found:
                found.add(id(part))
                waiting += part.used
        return [part for part in self.parts if id(part) in found]

    def is_same(self, name: str, other: _Module) -> bool:
        """Does a name mean the same in both, with all that it needs?"""
        mine, theirs = self.needed_by([name]), other.needed_by([name])
        return [part.meaning for part in mine] == [part.meaning for part in theirs]


def _with_function(host: str, donor: str, name: str) -> str | None:
    own, other = _read(host), _read(donor)
    if own is None or other is None:
        return None
    before, after = own.parts_by_name.get(name), other.parts_by_name.get(name)
    if before is None or after is None or not _fits(before.node, after.node):
        return None
    merged = _in_one_text(own, other, before, after) or _side_by_side(own, other, before, after)
    return None if merged is None else _pruned(merged + own.tail)


def _in_one_text(own: _Module, other: _Module, before: _Part, after: _Part) -> str | None:
    """The kernels that the function calls move into the host's kernel text."""
    (name,) = after.names
    foreign = [part for part in _brought(own, other, after) if not _means_the_same(part, own)]
    texts = [(own.parts_by_name.get(part.names[0]), part) for part in foreign if part.names]
    if len(foreign) != 1 or not texts or texts[0][0] is None:
        return None
    mine, theirs = texts[0][0], texts[0][1]
    here, there = _constant(mine), _constant(theirs)
    if here is None or there is None or mine.text.count(f'r"""{here}"""') != 1:
        return None
    users = [part for part in own.parts if part is not before and part is not mine]
    others = {each for part in users for each in part.attributes}
    known = exported_functions(there)
    called = [each for each in after.attributes if known and each in known[1]]
    made = merged_text(here, there, called, others, name.removeprefix("run_"))
    if made is None or '"""' in made[0]:
        return None
    function = after.text
    for old, new in made[1].items():
        function = re.sub(rf"\.{old}\b", f".{new}", function)
    opening = "\n" if here.startswith("\n") else ""
    changed = {id(mine): mine.text.replace(here, opening + made[0]), id(before): function}
    return "".join(changed.get(id(part), part.text) for part in own.parts)


def _side_by_side(own: _Module, other: _Module, before: _Part, after: _Part) -> str | None:
    """All that the function needs comes along, under new names where the host has others."""
    (name,) = after.names
    names: dict[str, str] = {}
    texts: list[str] = []
    for part in _brought(own, other, after):
        clashing = [each for each in part.names if each in own.parts_by_name]
        if clashing and isinstance(part.node, _IMPORTS):
            return None
        names |= {each: _fresh(each, own, other, name) for each in clashing}
        texts.append(part.renamed(names) or "")
    texts.append(after.renamed(names) or "")
    if not all(texts):
        return None
    replaced = "".join("\n\n" + text.strip("\n") + "\n" for text in texts)
    return "".join(replaced if part is before else part.text for part in own.parts)


def _brought(own: _Module, other: _Module, after: _Part) -> list[_Part]:
    """What the function needs and the host does not have, or not in the same meaning."""
    needed = [part for part in other.needed_by(after.names) if part is not after]
    return [p for p in needed if not all(own.is_same(each, other) for each in p.names)]


def _means_the_same(part: _Part, own: _Module) -> bool:
    """Is it written as in the host, whatever it uses?"""
    here = own.parts_by_name.get(part.names[0]) if part.names else None
    return here is not None and here.meaning == part.meaning


def _constant(part: _Part) -> str | None:
    match part.node:
        case ast.Assign(value=ast.Constant(value=str(text))):
            return text
    return None


def _fits(before: ast.stmt, after: ast.stmt) -> bool:
    """Can one function be called as the other is?"""
    both = isinstance(before, ast.FunctionDef) and isinstance(after, ast.FunctionDef)
    return both and ast.dump(before.args) == ast.dump(after.args)  # type: ignore[attr-defined]


def _fresh(name: str, own: _Module, other: _Module, function: str) -> str:
    suffix = function.removeprefix("run_")
    tries: Iterator[str] = (f"{name}_{suffix}{'_' * more}" for more in range(100))
    taken = own.parts_by_name.keys() | other.parts_by_name.keys()
    return next(each for each in tries if each not in taken)


def _pruned(source: str) -> str | None:
    """Without definitions that the model no longer uses."""
    module = _read(source)
    if module is None:
        return None
    kept = {id(part) for part in module.needed_by([_MODEL])}
    texts = [
        part.text
        for part in module.parts
        if id(part) in kept or not part.names or isinstance(part.node, _IMPORTS)
    ]
    return "".join(texts) + module.tail


@lru_cache(maxsize=16)
def _read(source: str) -> _Module | None:
    """None where it is no Python, or a name is defined twice."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = source.splitlines(keepends=True)
    parts, at = [], 0
    for node in tree.body:
        end = node.end_lineno or node.lineno
        parts.append(_Part("".join(lines[at:end]), node))
        at = end
    names = [name for part in parts for name in part.names if not isinstance(part.node, _IMPORTS)]
    if len(set(names)) < len(names) or any(part.text == "" for part in parts):
        return None
    return _Module(parts, "".join(lines[at:]))


def _bound(node: ast.arg | ast.Global) -> set[str]:
    return {node.arg} if isinstance(node, ast.arg) else set(node.names)


def _spliced(text: str, places: list[tuple[int, int, str]], names: Mapping[str, str]) -> str:
    """`places` are lines, columns in bytes, and the names that stand there."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for line, column, name in sorted(places, reverse=True):
        before, after = lines[line - 1][:column], lines[line - 1][column + len(name.encode()) :]
        lines[line - 1] = before + names[name].encode() + after
    return b"".join(lines).decode()
