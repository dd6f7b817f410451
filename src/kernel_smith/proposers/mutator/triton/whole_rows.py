"""The edit that holds a row in registers between the loops that read it block by block."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.triton.aligned import names_stored
from kernel_smith.proposers.mutator.triton.launching import Launch, pointer_of
from kernel_smith.proposers.mutator.triton.loops import RowKernel, row_kernels
from kernel_smith.proposers.mutator.triton.text import TritonText, triton_edit
from kernel_smith.proposers.mutator.triton.values import Values, access, called

_MOST_ELEMENTS = 16384  # that a program can hold of each tensor
_EACH_THREAD = 32  # elements of a tile for one thread, at most
_WARP, _USUAL_WARPS, _MOST_WARPS = 32, 4, 32


@triton_edit(
    "row-in-registers",
    "Make a block as long as the row, so that what several loops over it read is read once.",
    together=True,
    told=("row in registers",),
)
def row_in_registers(text: TritonText) -> Iterator[Site]:
    for found in row_kernels(text):
        block = 1 << (found.size - 1).bit_length()
        rows = found.rows_at_once()
        if len(found.loops) < 2 or rows is None or rows * block > _MOST_ELEMENTS:
            continue
        again = list(_read_again(found))
        if any(map(_loads, again)) and found.is_only_a_length() and _counts_alone(found):
            changes = [*_kept(text, again), *_without_loops(text, found, again)]
            for launch in found.launches:
                changes.append(text.replaced(launch.given[found.block], str(block)))
                changes += _with_warps(text, launch, rows * block)
            place = f"{found.kernel.name}, {found.size} of {block} elements"
            yield Site(place, tuple(changes))


def _counts_alone(found: RowKernel) -> bool:
    """Are the loops' variables set by nothing but the loops?"""
    variables = {ast.unparse(loop.target) for loop in found.loops}
    stored = [name for name in names_stored(found.kernel) if name in variables]
    return len(stored) == len(found.loops)


@dataclass(frozen=True, eq=False)
class _Again:
    """What a statement of a later loop reads again, and what holds it by then. Without a node, the
    whole statement gives a name what it has."""

    statement: ast.stmt
    node: ast.expr | None = None
    held: str = ""


def _read_again(found: RowKernel) -> Iterator[_Again]:
    values = Values(found.may_meet)
    for statement in found.kernel.body:
        if not isinstance(statement, ast.For):
            values.read(statement)
            continue
        (start,) = ast.parse(f"{ast.unparse(statement.target)} = 0").body
        for step in (start, *statement.body):
            if statement is not found.loops[0] and step is not start:
                yield from _again(values, step)
            values.read(step)


def _again(values: Values, step: ast.stmt) -> Iterator[_Again]:
    match step:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if values.holds(
            name, values.number(value)
        ):
            yield _Again(step)
            return
    for node, held in _held(values, step):
        yield _Again(step, node, held)


def _held(values: Values, node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield the widest expressions that load what a name holds already, or what was stored."""
    if isinstance(node, ast.expr) and any(called(part) == "load" for part in ast.walk(node)):
        holder = values.holder(values.number(node))
        if holder is None and isinstance(node, ast.Call) and called(node) == "load":
            holder = _stored(values, node)
        if holder is not None:
            yield node, holder
            return
    for child in ast.iter_child_nodes(node):
        yield from _held(values, child)


def _stored(values: Values, load: ast.Call) -> str | None:
    """Return what is loaded, from what was stored there: rounded to what is in memory."""
    name = values.stored_at(load)
    if name is None:
        return None
    rounded = f"{name}.to({pointer_of(load)}.dtype.element_ty)"
    _, mask, other = access(load)
    if mask is None or other is None:
        return rounded
    return f"tl.where({ast.unparse(mask)}, {rounded}, {ast.unparse(other)})"


def _loads(again: _Again) -> bool:
    return any(called(part) == "load" for part in ast.walk(again.node or again.statement))


def _kept(text: TritonText, again: list[_Again]) -> Iterator[Splice]:
    for each in again:
        if each.node is None:
            yield text.without(each.statement)
        else:
            yield text.replaced(each.node, each.held)


def _without_loops(text: TritonText, found: RowKernel, again: list[_Again]) -> Iterator[Splice]:
    """Yield the loops' bodies, which run once."""
    gone = {line for each in again if each.node is None for line in _lines(each.statement)}
    named: set[str] = set()
    for loop in found.loops:
        name = text.of(loop.target)
        begin, end = text.line_start(loop.lineno), text.line_start(loop.lineno + 1)
        first = f"{' ' * loop.col_offset}{name} = 0\n"
        yield Splice(begin, end, "" if name in named else first)
        named.add(name)
        deeper = loop.body[0].col_offset - loop.col_offset
        for line in _lines(loop):
            at = text.line_start(line)
            if line > loop.lineno and line not in gone and text.is_indented(line, deeper):
                yield Splice(at, at + deeper, "")


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _with_warps(text: TritonText, launch: Launch, elements: int) -> Iterator[Splice]:
    """Threads enough for the row to fit in their registers."""
    wanted = min(elements // (_WARP * _EACH_THREAD), _MOST_WARPS)
    given = launch.given.get("num_warps")
    if given is None and wanted > _USUAL_WARPS:
        yield text.keyword(launch.call, f"num_warps={wanted}")
    elif given is not None and wanted > (launch.number("num_warps") or _MOST_WARPS):
        yield text.replaced(given, str(wanted))
