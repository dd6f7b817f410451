"""Triton kernels of a candidate as Python syntax trees, with positions in the file.

Python's own `ast` knows where every expression stands, so text between two expressions stays as
it is. A library that keeps white space in its tree would be one more dependency for nothing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, count

from kernel_smith.programs.parsing import parse_python
from kernel_smith.proposers.mutator.edit import Edit, Machine, Site, Splice, everywhere, splice

_MOST_PLACES = 16
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript)


@dataclass(frozen=True, eq=False)
class TritonText:
    """One candidate. Positions are bytes, as in `ast`."""

    text: str
    tree: ast.Module
    machine: Machine

    @cached_property
    def kernels(self) -> list[ast.FunctionDef]:
        functions = [n for n in self._nodes if isinstance(n, ast.FunctionDef)]
        return [function for function in functions if any(map(_is_jit, function.decorator_list))]

    @cached_property
    def functions(self) -> list[ast.FunctionDef]:
        """Those that run on the host, methods among them."""
        kernels = set(self.kernels)
        functions = [n for n in self._nodes if isinstance(n, ast.FunctionDef)]
        return [function for function in functions if function not in kernels]

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.line_start(node.lineno) + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.line_start(node.end_lineno) + node.end_col_offset

    def line_start(self, line: int) -> int:
        return self._line_starts[line - 1]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(map(len, self._data.splitlines(keepends=True)))]

    @cached_property
    def _data(self) -> bytes:
        return self.text.encode()

    def of(self, node: ast.expr | ast.stmt) -> str:
        return self._data[self.start(node) : self.end(node)].decode()

    def operand(self, node: ast.expr) -> str:
        """Return an expression that means the same beside any operator. Parentheses around one
        are not part of it for `ast`."""
        return self.of(node) if isinstance(node, _ATOMS) else f"({self.of(node)})"

    def replaced(self, node: ast.expr | ast.stmt, text: str) -> Splice:
        return Splice(self.start(node), self.end(node), text)

    def is_indented(self, line: int, columns: int) -> bool:
        at = self.line_start(line)
        return self._data[at : at + columns] == b" " * columns

    def rendered(self, node: ast.expr | ast.stmt, become: Callable[[ast.AST], str | None]) -> str:
        """Its text, where the widest parts that become something else do so."""
        base = self.start(node)

        def pieces(part: ast.AST) -> Iterator[Splice]:
            text = become(part)
            if text is not None and isinstance(part, ast.expr):
                yield Splice(self.start(part) - base, self.end(part) - base, text)
                return
            for child in ast.iter_child_nodes(part):
                yield from pieces(child)

        return splice(self.of(node), pieces(node))

    def without(self, statement: ast.stmt) -> Splice:
        """A statement gone, with the lines that it stands on."""
        start = self.line_start(statement.lineno)
        return Splice(start, self._line_starts[statement.end_lineno or statement.lineno], "")

    def parameter(self, kernel: ast.FunctionDef, text: str) -> Splice:
        """More parameters at the end of a kernel's."""
        last = kernel.args.args[-1]
        at = self.line_start(last.end_lineno or last.lineno) + (last.end_col_offset or 0)
        return Splice(at, at, f", {text}")

    def unused(self, name: str) -> str:
        """Return a name that the candidate does not use, from one that says what it is for."""
        candidates = (f"{name}_{number}" for number in count())
        return next(each for each in candidates if each not in self.text)

    def keyword(self, call: ast.Call, text: str) -> Splice:
        """Return one more argument at the end of a call."""
        end = self.end(call) - 1
        before = self._data[self.start(call) : end].decode().rstrip()
        at = self.start(call) + len(before.encode())
        comma = "" if before.endswith((",", "(")) else ","
        return Splice(at, at, f"{comma} {text}" if comma else f" {text}")

    def launches(self, kernel: str) -> list[ast.Call] | None:
        """Return all launches `kernel[grid](...)`, or None if the kernel is used in any other
        way."""
        found = self._launches.get(kernel, [])
        return found if found and self._uses[kernel] == len(found) else None

    @cached_property
    def _launches(self) -> dict[str, list[ast.Call]]:
        """What looks like one, by the name before the grid."""
        found: dict[str, list[ast.Call]] = {}
        for node in self._nodes:
            match node:
                case ast.Call(func=ast.Subscript(value=ast.Name(id=name))) as launch:
                    found.setdefault(name, []).append(launch)
        return found

    @cached_property
    def _uses(self) -> Counter[str]:
        return Counter(node.id for node in self._nodes if isinstance(node, ast.Name))

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def is_python_with(self, splices: Iterable[Splice]) -> bool:
        """Only the statements of the file that change are read again: a seed has many of them."""
        changes: dict[tuple[int, int], list[Splice]] = {}
        for piece in splices:
            within = [(a, b) for a, b in self._statements if a <= piece.start and piece.end <= b]
            place = within[0] if within else (0, len(self._data))
            shifted = Splice(piece.start - place[0], piece.end - place[0], piece.text)
            changes.setdefault(place, []).append(shifted)
        return all(
            _parsed(splice(self._data[start:end].decode(), pieces)) is not None
            for (start, end), pieces in changes.items()
        )

    @cached_property
    def _statements(self) -> list[tuple[int, int]]:
        """Where those of the file begin, with their decorators, and end."""
        return [
            (self.line_start(_first_line(node)) + node.col_offset, self.end(node))
            for node in self.tree.body
        ]


def triton_edit(
    name: str, sentence: str, *, together: bool = False, told: tuple[str, ...] = ()
) -> Callable[[Callable[[TritonText], Iterator[Site]]], Edit]:
    """Makes an edit of a function that finds the sites in one candidate. `together`: also for all
    of them at once; `told`: see `Edit`."""

    def make(find_in: Callable[[TritonText], Iterator[Site]]) -> Edit:
        def find(source: str, machine: Machine) -> list[Site]:
            text = _read(source, machine)
            if text is None or "import triton.language as tl" not in source:
                return []
            sites = [site for site in find_in(text) if text.is_python_with(site.splices)]
            return everywhere(sites, _MOST_PLACES) if together else sites

        return Edit(name, ("triton",), sentence, find, _replace, told)

    return make


def calls(node: ast.AST, name: str) -> list[ast.Call]:
    """Return the calls of `tl.name` below a node, in the order of the text."""
    found = [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == name
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id == "tl"
    ]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def program_ids(kernel: ast.FunctionDef) -> dict[int, list[ast.Call]] | None:
    """Return the calls of `tl.program_id` by axis; None if an axis is not plain to see."""
    found: dict[int, list[ast.Call]] = {}
    for call in calls(kernel, "program_id"):
        given = [*call.args, *(k.value for k in call.keywords if k.arg == "axis")]
        if len(given) != 1 or not isinstance(given[0], ast.Constant):
            return None
        if not isinstance(given[0].value, int):
            return None
        found.setdefault(given[0].value, []).append(call)
    return found


def grid(launch: ast.Call) -> list[ast.expr] | None:
    """Return the sizes of a launch's grid, where it is a tuple as it stands."""
    assert isinstance(launch.func, ast.Subscript)
    sizes = launch.func.slice
    if not isinstance(sizes, ast.Tuple) or any(isinstance(e, ast.Starred) for e in sizes.elts):
        return None
    return sizes.elts


def _is_jit(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, ast.Attribute) and called.attr == "jit"


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


@lru_cache(maxsize=4)
def _read(source: str, machine: Machine) -> TritonText | None:
    """Every edit asks for it."""
    tree = _parsed(source)
    return None if tree is None else TritonText(source, tree, machine)


def _parsed(source: str) -> ast.Module | None:
    try:
        return parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _replace(source: str, site: Site) -> str:
    return splice(source, site.splices)
