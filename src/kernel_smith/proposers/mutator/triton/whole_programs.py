"""The edit that lets all programs but the last do without masks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.triton.aligned import (
    ALIGNED,
    bounds,
    limits,
    names_of,
    names_stored,
)
from kernel_smith.proposers.mutator.triton.launching import launches_of, number_of
from kernel_smith.proposers.mutator.triton.loops import is_flat
from kernel_smith.proposers.mutator.triton.text import TritonText, calls, triton_edit
from kernel_smith.proposers.mutator.triton.values import called

_FEWEST_PROGRAMS = 8


@triton_edit(
    "unmasked-programs",
    "Let all programs but the last do without masks, so that an odd number of elements moves in "
    "vectors.",
    together=True,
    told=("unmasked blocks",),
)
def unmasked_programs(text: TritonText) -> Iterator[Site]:
    for kernel in text.kernels:
        launches, tile = launches_of(text, kernel), _tile(kernel)
        if not launches or tile is None:
            continue
        names = names_of(tile.name, kernel.body)
        limit, *others = sorted(limits(kernel, names)) or [""]
        size = int(limit) if limit.isdigit() else number_of(launches, limit)
        length = number_of(launches, tile.block)
        if others or size is None or length is None or size % ALIGNED == 0:
            continue
        if size >= _FEWEST_PROGRAMS * length:
            masks = bounds(kernel, names, {limit})
            changes = tuple(_changes(text, kernel, tile, masks))
            yield Site(f"{kernel.name}, {size} elements", changes)


@dataclass(frozen=True, eq=False)
class _Tile:
    """`name = first + tl.arange(0, block)`, where `first` is a number."""

    statement: ast.Assign
    name: str
    first: str
    block: str


def _tile(kernel: ast.FunctionDef) -> _Tile | None:
    """Return the only range of a kernel without loops."""
    if not is_flat(kernel) or any(isinstance(each, ast.For) for each in kernel.body):
        return None
    if len(calls(kernel, "arange")) != 1:
        return None
    for statement in kernel.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(left=ast.Name(id=first), op=ast.Add(), right=spot),
            ) if block := _length(spot):
                once = names_stored(kernel).count(first) == names_stored(kernel).count(name) == 1
                return _Tile(statement, name, first, block) if once else None
    return None


def _length(spot: ast.expr) -> str | None:
    """BLOCK of `tl.arange(0, BLOCK)` or `tl.arange(0, BLOCK)[:]`."""
    match spot:
        case ast.Subscript(value=inner, slice=ast.Slice(lower=None, upper=None, step=None)):
            return _length(inner)
        case ast.Call(args=[ast.Constant(value=0), ast.Name(id=block)]) if called(spot) == "arange":
            return block
    return None


def _changes(
    text: TritonText, kernel: ast.FunctionDef, tile: _Tile, masks: list[ast.Compare]
) -> Iterator[Splice]:
    """Yield the rest of the kernel twice: once for whole tiles, once for the last."""
    rest = kernel.body[kernel.body.index(tile.statement) :]
    indent = " " * tile.statement.col_offset

    def whole(node: ast.AST) -> str | None:
        return f"tl.full([{tile.block}], True, tl.int1)" if node in masks else None

    limit = ast.unparse(masks[0].comparators[0])
    lines = [
        f"if {tile.first} + {tile.block} <= {limit}:",
        *(f"{indent}    {text.rendered(step, whole)}" for step in rest),
        f"{indent}else:",
        *(f"{indent}    {text.of(step)}" for step in rest),
    ]
    yield Splice(text.start(rest[0]), text.end(rest[-1]), "\n".join(lines))
