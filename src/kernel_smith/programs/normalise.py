"""The same program in other words: candidates without comments, formatting and local names.

`fingerprint` is equal for candidates that differ only in comments, whitespace, docstrings, names
of local variables, or the formatting of kernel text inside strings. It never merges programs that
differ in anything else. What is not Python is compared as it stands.
"""

from __future__ import annotations

import ast
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count
from typing import NamedTuple

from kernel_smith.programs.c_text import c_tokens, joined, looks_like_c
from kernel_smith.programs.local_names import local_names
from kernel_smith.programs.parsing import parse_python
from kernel_smith.records import Candidate, content_hash

_REMEMBERED = 256
_REMEMBERED_STATEMENTS = 1024
_LINE_END = re.compile(r"\r\n|\r|\n")  # as Python counts lines
_SILENT_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
# Tuples and sets: what is written where it is used is put together anew for every node.
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_JOINING = frozenset({ast.JoinedStr, ast.BinOp})
_NAMING = (ast.keyword, ast.arg)
_NOTED = frozenset({ast.Attribute, ast.Call, *_NAMING})
_TELLING_FIELDS = {
    kind: tuple(field for field in kind._fields if field not in _SILENT_FIELDS)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_NO_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Program:
    """What is left of a source when its wording is gone."""

    atoms: tuple[str, ...]
    size: int
    """Nodes of the syntax tree and tokens of kernel text."""
    words: frozenset[str]
    """Names, attributes and keywords that the Python part uses."""
    launch_sites: int
    """Calls of the form `kernel[grid](...)`."""
    kernel_text: str
    """Kernel text inside strings, without comments and formatting."""


def fingerprint(candidate: Candidate) -> str:
    """Equal for candidates that are the same program."""
    return _fingerprint(candidate.backend, candidate.source)


@lru_cache(maxsize=_REMEMBERED)
def _fingerprint(backend: str, source: str) -> str:
    return content_hash(backend, "\n".join(program(source).atoms))


@lru_cache(maxsize=_REMEMBERED)
def program(source: str) -> Program:
    """Read a source. One that is no Python is a program of its lines."""
    try:
        tree = parse_python(source)
        keep_docstrings = "__doc__" in source
        parts = [
            _read_once(_Wording(text, line, node.col_offset, keep_docstrings), node)
            for text, line, node in _statements(source, tree)
            if keep_docstrings or not _is_inert(node)
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Program(tuple(source.split("\n")), len(source.split()), frozenset(), 0, "")
    return Program(
        tuple(chain.from_iterable(part.atoms for part in parts)),
        1 + sum(part.size for part in parts),
        frozenset().union(*(part.words for part in parts)),
        sum(part.launch_sites for part in parts),
        "\n".join(part.kernel_text for part in parts if part.kernel_text),
    )


class _Wording(NamedTuple):
    """What a statement follows from."""

    text: str
    """Its lines, with those before it that belong to no other."""
    line: int
    column: int
    """Where it begins there, for several may share a line."""
    keep_docstrings: bool


def _statements(source: str, tree: ast.Module) -> Iterator[tuple[str, int, ast.stmt]]:
    """Yield the statements of a module, with their lines and on which of them they begin."""
    lines = _LINE_END.split(source)
    done = 0
    for node in tree.body:
        assert node.end_lineno is not None
        begin = min(done, node.lineno - 1)
        yield "\n".join(lines[begin : node.end_lineno]), node.lineno - begin, node
        done = node.end_lineno


_read_before: OrderedDict[_Wording, Program] = OrderedDict()


def _read_once(wording: _Wording, node: ast.stmt) -> Program:
    """Read a statement, unless it was read before: programs of a run have most of theirs in
    common. A local name means nothing outside of its statement, so they are numbered in each."""
    known = _read_before.get(wording)
    if known is None:
        reader = _Reader(wording.keep_docstrings)
        reader.read(node, _NO_NAMES)
        known = _read_before[wording] = reader.program()
        if len(_read_before) > _REMEMBERED_STATEMENTS:
            _read_before.popitem(last=False)
    return known


class _Reader:
    """Writes a syntax tree down as atoms, one per node, field value or bracket."""

    def __init__(self, keep_docstrings: bool) -> None:
        self._keep_docstrings = keep_docstrings
        self._atoms: list[str] = []
        self._size = 0
        self._words: set[str] = set()
        self._launch_sites = 0
        self._kernel_text: list[str] = []
        self._fresh = count()

    def program(self) -> Program:
        return Program(
            tuple(self._atoms),
            self._size,
            frozenset(self._words),
            self._launch_sites,
            "\n".join(self._kernel_text),
        )

    def read(self, node: ast.AST, names: Mapping[str, str], whole: bool = True) -> None:
        """`whole`: a string here is no part of a longer one."""
        kind = type(node)
        self._size += 1
        if kind is ast.Name:
            self._name(node, names)  # type: ignore[arg-type]
            return
        if kind is ast.Constant:
            self._constant(node.value, whole)  # type: ignore[attr-defined]
            return
        if kind in _NOTED:
            self._note(node)
        self._atoms.append(kind.__name__)
        inner = names
        if isinstance(node, _FUNCTIONS):
            # No source can spell such a name, so it hides none.
            inner = {**names, **{name: f"<{next(self._fresh)}>" for name in local_names(node)}}
        whole = kind not in _JOINING
        for field in _TELLING_FIELDS[kind]:
            self._value(getattr(node, field), inner if field == "body" else names, whole)

    def _name(self, node: ast.Name, names: Mapping[str, str]) -> None:
        self._words.add(node.id)
        self._atoms += ("Name", names.get(node.id, node.id))

    def _value(self, value: object, names: Mapping[str, str], whole: bool) -> None:
        if isinstance(value, ast.AST):
            self.read(value, names, whole)
        elif type(value) is list:
            self._atoms.append("[")
            for item in value:
                if self._keep_docstrings or type(item) is not ast.Expr or not _is_inert(item):
                    self._value(item, names, whole)
            self._atoms.append("]")
        else:
            self._atoms.append(repr(value))

    def _constant(self, value: object, whole: bool) -> None:
        atoms: tuple[str, ...] = ("Constant", repr(value))
        if isinstance(value, str) and looks_like_c(value):
            tokens = c_tokens(value)
            self._size += len(tokens)
            self._kernel_text.append(joined(tokens))
            # A fragment may begin inside a comment or a literal, where blanks have a meaning.
            atoms = ("Text", *map(repr, tokens)) if whole else atoms
        self._atoms += atoms

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Attribute):
            self._words.add(node.attr)
        elif isinstance(node, _NAMING) and node.arg:
            self._words.add(node.arg)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            self._launch_sites += 1


def _is_inert(item: object) -> bool:
    """A docstring, or any other constant that is a statement."""
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
