"""Kernel sources in a candidate's syntax tree, found without running the candidate.

`find_sources` gives the sources that are plain text in the file, so that they can be compiled
ahead. It follows a name only if the whole file binds it once, and so never takes the wrong text.
`has_kernel_call` is the wider question whether the candidate uses the helper at all.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kernel_smith.inline.dialects import SOURCE_NAME

_MODULE = "kernel_smith.inline"
_ANY_DIALECT = "compiled"  # takes the dialect as its first argument
_HELPERS = {
    f"{_MODULE}.{helper}": helper for helper in ("cpp", "cuda", "maca", "hip", _ANY_DIALECT)
}

# Names that double one another could otherwise spell a text of any length.
_MOST_PIECES = 10_000
_MOST_CHARACTERS = 1_000_000
# A chain of names written backwards takes a pass over the file for each of its links.
_MOST_RENAMINGS = 8


class Piece(NamedTuple):
    """A text in the file: the name that compilers know it by, and the line on which it begins."""

    name: str
    text: str
    first_line: int


@dataclass(frozen=True)
class Literal:
    """A source that is text in the file; line k of it stands on line `first_line` + k - 1.

    One that is put together from several texts has them as `parts`, each with a line of its own.
    """

    dialect: str
    source: str
    flags: tuple[str, ...]
    first_line: int
    call_line: int
    parts: tuple[Piece, ...] = ()

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self.parts or (Piece(SOURCE_NAME, self.source, self.first_line),)


def find_sources(tree: ast.Module) -> list[Literal]:
    """Return every call of the helper whose source and flags are literals, in the order of the
    file."""
    names = imported_names(tree)
    constants = Constants(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (helper := _HELPERS.get(full_name(node.func, names))):
            literal = _literal(node, helper, constants)
            found += [literal] if literal else []
    return sorted(found, key=lambda literal: literal.call_line)


def has_kernel_call(tree: ast.Module) -> bool:
    """Tell whether the helper is called, or handed to something that may call it."""
    names = imported_names(tree)
    renamings = {id(value) for _, value in _assignments(ast.walk(tree))}
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and id(node) not in renamings
        and full_name(node, names) in _HELPERS
        for node in ast.walk(tree)
    )


class Constants:
    """The values of literal expressions, and of names that are bound once to one."""

    def __init__(self, tree: ast.Module) -> None:
        counts = Counter(_bindings(tree))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        inside = [pair for node in classes for pair in _assignments(node.body)]
        once = {name for name, count in counts.items() if count == 1}
        self._owners = {"self", "cls", *(node.name for node in classes)}
        self._in_classes = {name: value for name, value in inside if name in once}
        self._in_module = {name: value for name, value in _assignments(tree.body) if name in once}

    def pieces(self, node: ast.expr) -> list[ast.Constant] | None:
        """Return the string constants that an expression joins, or None if it is anything else."""
        found: list[ast.Constant] = []
        characters = 0
        pending = [node]
        for _ in range(_MOST_PIECES):
            if not pending:
                return found
            node = pending.pop()
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node)
                characters += len(node.value)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                pending += [node.right, node.left]
            elif value := self._followed(node):
                pending.append(value)
            else:
                return None
            if characters > _MOST_CHARACTERS:
                return None
        return None

    def strings(self, node: ast.expr) -> tuple[str, ...] | None:
        """Return the elements of a tuple or list of string expressions."""
        elements = self.elements(node)
        if elements is None:
            return None
        texts = []
        for element in elements:
            pieces = self.pieces(element)
            if pieces is None:
                return None
            texts.append(joined(pieces))
        return tuple(texts)

    def elements(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the expressions in a tuple or list; None for anything else."""
        node = self._followed(node) or node
        return node.elts if isinstance(node, ast.Tuple | ast.List) else None

    def _followed(self, node: ast.expr) -> ast.expr | None:
        """Return what a name stands for, or a class attribute."""
        if isinstance(node, ast.Name):
            return self._in_module.get(node.id) or self._in_classes.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._in_classes.get(node.attr) if node.value.id in self._owners else None
        return None


def _literal(call: ast.Call, helper: str, constants: Constants) -> Literal | None:
    """Return the literal behind one call, if its arguments are ones."""
    named = ("dialect", "source", "flags") if helper == _ANY_DIALECT else ("source", "flags")
    arguments = dict(zip(named, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        arguments[keyword.arg] = keyword.value
    pieces = constants.pieces(arguments["source"]) if "source" in arguments else None
    flags = constants.strings(arguments["flags"]) if "flags" in arguments else ()
    dialect = helper
    if helper == _ANY_DIALECT:
        spelled = constants.pieces(arguments["dialect"]) if "dialect" in arguments else None
        dialect = joined(spelled or [])
    if not pieces or flags is None:
        return None
    return Literal(dialect, joined(pieces), flags, first_line_of(pieces[0]), call.lineno)


def joined(pieces: list[ast.Constant]) -> str:
    return "".join(str(piece.value) for piece in pieces)


def first_line_of(constant: ast.Constant) -> int:
    """Return the line on which the text begins.

    If the text has one line less than the literal, a backslash joined two lines, almost always the
    one behind the opening quotes. If they differ otherwise, no line is certain, and the literal's
    own has to do.
    """
    extent = (constant.end_lineno or constant.lineno) - constant.lineno
    joined_lines = extent - str(constant.value).count("\n")
    return constant.lineno + 1 if joined_lines == 1 else constant.lineno


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Return what names stand for after the imports and after plain renamings: {"build":
    "a.b.cpp"}."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            if node.module == _MODULE and node.names[0].name == "*":
                names.update({helper: full for full, helper in _HELPERS.items()})
    # A name may be made of one that is bound further down in the walk.
    renamings = list(_assignments(ast.walk(tree)))
    for _ in range(_MOST_RENAMINGS):
        known = len(names)
        for name, value in renamings:
            if full := full_name(value, names):
                names.setdefault(name, full)
        if len(names) == known:
            break
    return names


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """`inline.cpp` as `kernel_smith.inline.cpp`; empty for what no import explains."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return ""
    return ".".join([names[node.id], *attributes])


def _assignments(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the plain `name = value` among some nodes."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def _bindings(tree: ast.AST) -> Iterator[str]:
    """Yield every name or attribute that the file binds anywhere, as often as it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest
