"""The edit that lets a row in registers begin at an aligned address, ends by themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.triton.aligned import (
    ALIGNED,
    SHORTEST,
    WIDE_ENOUGH,
    Index,
    accesses,
    aligned_by,
    as_number,
    bounds,
    index_over,
    limits,
    names_of,
    names_read,
    names_stored,
    usual_start,
    zeros_of,
)
from kernel_smith.proposers.mutator.triton.launching import launches_of, number_of
from kernel_smith.proposers.mutator.triton.loops import is_flat, rows_at_once
from kernel_smith.proposers.mutator.triton.text import TritonText, calls, triton_edit
from kernel_smith.proposers.mutator.triton.values import called

_ENDS = 2 * ALIGNED  # elements: fewer than ALIGNED before the body, and fewer after it
_NEW_NAMES = {"row_start", "head", "body", "ends"}
# How the result for the body and that for the ends become one.
_JOINED = {
    "sum": "({0} + {1})",
    "max": "tl.maximum({0}, {1})",
    "min": "tl.minimum({0}, {1})",
    "max2": "triton_helpers.maximum({0}, {1})",
    "min2": "triton_helpers.minimum({0}, {1})",
}
_BY_ELEMENT = {
    *("load", "store", "where", "to", "broadcast_to", "full", "zeros", "maximum", "minimum"),
    *("abs", "exp", "exp2", "log", "log2", "rsqrt", "sqrt", "sqrt_rn", "sigmoid", "tanh"),
    *("sin", "cos", "erf", "floor", "ceil", "fma"),
}


class _NotUnderstood(Exception):
    """A statement does something with the row that may not be done piece by piece."""


@triton_edit(
    "aligned-row",
    "Let a row of an odd length that is held in registers begin at an aligned address, so that it "
    "moves in vectors; the few elements at both ends are taken by themselves. Sums may differ in "
    "the last digits.",
    together=True,
    told=("aligned body",),
)
def aligned_row(text: TritonText) -> Iterator[Site]:
    for kernel in text.kernels:
        for block in sorted({ast.unparse(call.args[-1]) for call in calls(kernel, "arange")}):
            row = _row(text, kernel, block)
            if row is None:
                continue
            try:
                changes = tuple(_Pieces(text, row).changes())
            except _NotUnderstood:
                continue
            yield Site(f"{kernel.name}, rows of {row.size}", changes)


@dataclass(frozen=True, eq=False)
class _Row:
    """A kernel without loops, of which each program has one row. `limit` is what the row's length
    is called, `start` where rows begin in memory, and `early` the same in words known early."""

    kernel: ast.FunctionDef
    block: str
    index: Index
    names: set[str]
    limit: str
    size: int
    start: str
    early: str
    zeros: set[str]


def _row(text: TritonText, kernel: ast.FunctionDef, block: str) -> _Row | None:
    launches, index = launches_of(text, kernel), index_over(block, kernel.body)
    if not launches or index is None or not is_flat(kernel):
        return None
    looped = any(isinstance(statement, ast.For) for statement in kernel.body)
    if looped or rows_at_once(kernel, launches, block) != 1:
        return None
    zeros = zeros_of(kernel)
    names = names_of(index.name, kernel.body, zeros)
    (limit, *others) = sorted(limits(kernel, names)) or [""]
    size = int(limit) if limit.isdigit() else number_of(launches, limit)
    start = usual_start(accesses(kernel, names))
    if others or size is None or size < SHORTEST or size % WIDE_ENOUGH == 0 or start is None:
        return None
    early = as_number(kernel, index.statement, start)
    used = names_read(kernel) | set(names_stored(kernel))
    if early is None or used & _NEW_NAMES or any(name.endswith("_end") for name in used):
        return None
    return _Row(kernel, block, index, names, limit, size, start, early, zeros)


class _Pieces:
    """Writes every statement about the row twice: for the body, and for the ends."""

    def __init__(self, text: TritonText, row: _Row) -> None:
        self._text = text
        self._row = row
        self._bounds = bounds(row.kernel, row.names, {row.limit})
        found = accesses(row.kernel, row.names)
        self._aligned = {each.place: each for each in found if each.start == row.start}
        self._wide: set[str] = set()  # names of what is as long as the row

    def changes(self) -> Iterator[Splice]:
        for statement in self._row.kernel.body:
            if statement is self._row.index.statement:
                yield self._lines(statement, self._placed())
                self._wide.add(self._row.index.name)
            elif self._is_wide(statement):
                yield self._of_row(statement)
            else:
                self._wide -= set(names_stored(statement))

    def _placed(self) -> list[str]:
        """Return the index, from the first aligned element on; that of the ends; and where they
        meet."""
        row, spot = self._row, self._text.of(self._row.index.spot)
        value = row.index.statement.value
        if value is not row.index.spot and ast.unparse(value).split(" + ")[0] not in row.zeros:
            raise _NotUnderstood
        ends = spot.replace(row.block, str(_ENDS))
        name = row.index.name
        return [
            f"row_start = {row.early}",
            f"head = ({ALIGNED} - row_start % {ALIGNED}) % {ALIGNED}",
            f"body = ({row.limit} - head) // {ALIGNED} * {ALIGNED}",
            f"{name} = head + {spot}",
            f"ends = {ends}",
            f"{name}_end = tl.where(ends < {ALIGNED}, ends, head + body + ends - {ALIGNED})",
        ]

    def _is_wide(self, node: ast.AST) -> bool:
        return bool(names_read(node) & (self._wide | {self._row.block}))

    def _of_row(self, statement: ast.stmt) -> Splice:
        match statement:
            case ast.Assign(targets=[ast.Name()], value=value) if joined := self._joints(value):
                return self._lines(statement, [self._joined(statement, joined)])
            case ast.Assign() | ast.Expr(value=ast.Call()) if self._is_by_element(statement):
                self._wide |= set(names_stored(statement))
                rendered = self._text.rendered
                return self._lines(
                    statement,
                    [rendered(statement, self._of_body), rendered(statement, self._of_ends)],
                )
        raise _NotUnderstood

    def _joints(self, value: ast.expr) -> list[ast.Call]:
        found = [n for n in ast.walk(value) if isinstance(n, ast.Call) and called(n) in _JOINED]
        return [call for call in found if self._is_wide(call)]

    def _joined(self, statement: ast.Assign, joints: list[ast.Call]) -> str:
        """Return a reduction along the row, of what the body and the ends come to."""
        (call, *others) = joints
        given = [ast.unparse(argument) for argument in call.args[1:]]
        given += [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in call.keywords]
        axis = "0" if self._row.index.is_flat else "1"
        inner = [*ast.walk(call)]
        beside = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and n not in inner}
        if (
            others
            or given not in ([axis], [f"axis={axis}"])
            or not self._is_by_element(call.args[0])
        ):
            raise _NotUnderstood
        if beside & (self._wide | {self._row.block}):
            raise _NotUnderstood
        self._wide -= set(names_stored(statement))
        pieces = [self._text.rendered(call, each) for each in (self._of_body, self._of_ends)]
        whole = _JOINED[called(call)].format(*pieces)
        return self._text.rendered(statement, lambda node: whole if node is call else None)

    def _is_by_element(self, node: ast.AST) -> bool:
        """Does every element of the result depend on the same one of each tile alone?"""
        made = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
        return all(
            called(call) in _BY_ELEMENT
            or ast.unparse(call.func).startswith(("libdevice.", "float"))
            for call in made
        )

    def _of_body(self, node: ast.AST) -> str | None:
        if node in self._bounds:
            return f"({self._text.of(self._row.index.spot)} < body)"
        if node in self._aligned:
            return self._aligned[node].told(aligned_by(self._row.index.is_flat))
        return None

    def _of_ends(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Compare) and node in self._bounds:
            inside = f"{self._of_ends(node.left)} < {self._row.limit}"
            return f"tl.where(ends < {ALIGNED}, ends < head, {inside})"
        if isinstance(node, ast.Name) and node.id in self._wide:
            return f"{node.id}_end"
        if isinstance(node, ast.Name) and node.id == self._row.block:
            return str(_ENDS)
        return None

    def _lines(self, statement: ast.stmt, lines: list[str]) -> Splice:
        indent = "\n" + " " * statement.col_offset
        return self._text.replaced(statement, indent.join(lines))
