"""C++ texts inside a candidate, as syntax trees: found, read, and written back.

`cpp_edit` makes an edit of a function that finds sites in one C++ text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from kernel_smith.inline.literals import find_sources
from kernel_smith.programs.parsing import parse_python
from kernel_smith.proposers.mutator.edit import Edit, Machine, Site, Splice, splice

_PARSER_LANGUAGE = Language(tree_sitter_cpp.language())


@dataclass(frozen=True, eq=False)
class CppText:
    """One C++ text with its tree. Positions are bytes."""

    text: str
    root: Node

    @cached_property
    def data(self) -> bytes:
        return self.text.encode()

    def of(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode()

    def functions(self) -> list[Node]:
        found = [node for node in walk(self.root) if node.type == "function_definition"]
        return [node for node in found if node.child_by_field_name("body")]

    def indent(self, node: Node) -> str:
        """Return the white space at the beginning of the node's line."""
        line = self.data[: node.start_byte].decode().rpartition("\n")[2]
        return line[: len(line) - len(line.lstrip())]

    def before(self, node: Node, line: str) -> tuple[Splice, ...]:
        """Return a line of its own ahead of a statement, in braces where only one statement may
        stand."""
        ahead = self.data[: node.start_byte].decode().rpartition("\n")[2]
        newline = "\n" + self.indent(node) if ahead.strip() else ""
        alone = node.parent is not None and node.parent.type != "compound_statement"
        start = f"{{\n{self.indent(node)}" if alone else newline
        text = f"{start}{line}\n{self.indent(node)}"
        first = Splice(node.start_byte, node.start_byte, text)
        last = Splice(node.end_byte, node.end_byte, f"\n{self.indent(node)}}}")
        return (first, last) if alone else (first,)

    def include(self, header: str) -> list[Splice]:
        """Return what makes sure that a header is included."""
        line = f"#include <{header}>"
        return [] if line in self.text else [Splice(0, 0, f"\n{line}")]


def parse(text: str) -> CppText:
    return CppText(text, Parser(_PARSER_LANGUAGE).parse(text.encode()).root_node)


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all below it, in the order of the text."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children))


def inside(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def replaced(node: Node, text: str) -> Splice:
    return Splice(node.start_byte, node.end_byte, text)


def rewritten(text: CppText, node: Node, splices: Iterable[Splice]) -> str:
    """Return the text of a node after replacements that lie inside it."""
    moved = [
        Splice(piece.start - node.start_byte, piece.end - node.start_byte, piece.text)
        for piece in splices
        if node.start_byte <= piece.start and piece.end <= node.end_byte
    ]
    return splice(text.of(node), moved)


def cpp_edit(
    name: str, sentence: str, *, threads: bool = False
) -> Callable[[Callable[[CppText], Iterator[Site]]], Edit]:
    """Makes an edit of a function that finds the sites in one C++ text.

    `threads`: it shares work among threads, which gains nothing on one core.
    """

    def make(find_in: Callable[[CppText], Iterator[Site]]) -> Edit:
        def find(source: str, machine: Machine) -> list[Site]:
            if threads and machine.cores == 1:
                return []
            return [
                replace(site, part=part)
                for part, text in enumerate(cpp_texts(source))
                for site in find_in(text)
            ]

        return Edit(name, ("cpp",), sentence, find, _replace)

    return make


@lru_cache(maxsize=64)
def cpp_texts(source: str) -> tuple[CppText, ...]:
    """Return the C++ texts of a candidate that parse without an error."""
    return tuple(parse(str(constant.value)) for constant in _whole_constants(source))


@lru_cache(maxsize=64)  # a program is read once, and not for each place at which it is edited
def _whole_constants(source: str) -> tuple[ast.Constant, ...]:
    found = kernel_constants(source, ("cpp",))
    return tuple(node for node in found if not parse(str(node.value)).root.has_error)


def kernel_constants(source: str, dialects: tuple[str, ...]) -> list[ast.Constant]:
    """String literals of the candidate that are, as they stand, handed to the compiler."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    texts = {literal.source for literal in find_sources(tree) if literal.dialect in dialects}
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in texts
    ]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _replace(source: str, site: Site) -> str:
    return with_splices(source, _whole_constants(source)[site.part], site)


def with_splices(source: str, constant: ast.Constant, site: Site) -> str:
    """Return the candidate after replacements inside one of its string literals."""
    text = splice(str(constant.value), site.splices)
    lines = source.encode().splitlines(keepends=True)
    assert constant.end_lineno is not None and constant.end_col_offset is not None
    start = sum(map(len, lines[: constant.lineno - 1])) + constant.col_offset
    end = sum(map(len, lines[: constant.end_lineno - 1])) + constant.end_col_offset
    return splice(source, [Splice(start, end, _quoted(text))])


def _quoted(text: str) -> str:
    """Return the text as a Python literal, readable where it can be."""
    fits = '"""' not in text and not text.endswith(("\\", '"')) and "\r" not in text
    return f'r"""{text}"""' if fits else repr(text)
