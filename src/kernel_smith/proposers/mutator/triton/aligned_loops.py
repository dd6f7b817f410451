"""The edit that lets loops over a row of an odd length run over aligned blocks without masks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.triton.aligned import (
    ALIGNED,
    WIDE_ENOUGH,
    accesses,
    aligned_by,
    as_number,
    bounds,
    limits,
    names_of,
    names_read,
    names_stored,
    range_over,
    usual_start,
)
from kernel_smith.proposers.mutator.triton.any_order import runs_in_any_order
from kernel_smith.proposers.mutator.triton.loops import RowKernel, row_kernels
from kernel_smith.proposers.mutator.triton.text import TritonText, calls, triton_edit
from kernel_smith.proposers.mutator.triton.values import access

_FEWEST_BLOCKS = 2  # without masks; shorter rows fit into registers
_NEW_NAMES = {"row_start", "head", "tiles", "rest"}


@triton_edit(
    "aligned-loop",
    "Let the loops over a row of an odd length run over blocks that begin at aligned addresses, "
    "without masks; what is left at both ends follows. Sums may differ in the last digits.",
    together=True,
    told=("aligned streams",),
)
def aligned_loop(text: TritonText) -> Iterator[Site]:
    for found in row_kernels(text):
        block = found.block_now or 0
        if found.size % WIDE_ENOUGH == 0 or found.size < _FEWEST_BLOCKS * block + ALIGNED:
            continue
        used = names_read(found.kernel) | set(names_stored(found.kernel))
        if found.rows_at_once() != 1 or used & _NEW_NAMES:
            continue
        loops = [_loop(found, loop) for loop in found.loops]
        starts = {loop.start for loop in loops if loop is not None}
        known = [loop for loop in loops if loop is not None]
        if len(known) != len(loops) or len(starts) != 1:
            continue
        early = as_number(found.kernel, found.loops[0], starts.pop())
        if early is not None:
            changes = [text.replaced(each.loop, _written(text, found, each)) for each in known]
            at = text.line_start(found.loops[0].lineno)
            changes.append(Splice(at, at, _placed(found, early)))
            yield Site(f"{found.kernel.name}, rows of {found.size}", tuple(changes))


@dataclass(frozen=True, eq=False)
class _Loop:
    """A loop whose index is `index = variable + spot`; `start` is where its rows begin."""

    loop: ast.For
    index: ast.Assign
    spot: ast.expr
    range: ast.expr
    names: set[str]
    start: str


def _loop(found: RowKernel, loop: ast.For) -> _Loop | None:
    variable = ast.unparse(loop.target)
    uses = [each for each in loop.body if variable in names_read(each)]
    match uses:
        case [
            ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=spot),
            ) as index
        ] if left == variable and (length := range_over(found.kernel, found.block, spot)):
            names = names_of(name, loop.body)
            start = usual_start(accesses(loop, names))
        case _:
            return None
    size = ast.unparse(loop.iter.args[1]) if isinstance(loop.iter, ast.Call) else ""
    plain = limits(loop, names) == {size} and names_stored(loop).count(name) == 1
    if start is None or not plain or not runs_in_any_order(loop, found.may_meet):
        return None
    if not _loads_whole_blocks(loop, names, size):
        return None
    return _Loop(loop, index, spot, length, names, start)


def _loads_whole_blocks(loop: ast.For, names: set[str], size: str) -> bool:
    """Is there a load along the row without any mask but the one for the row's end?"""
    ends = bounds(loop, names, {size})
    along = set(names)
    for step in loop.body:
        is_end = isinstance(step, ast.Assign) and step.value in ends
        if names_read(step) & along and not is_end:
            along |= set(names_stored(step))
    for call in calls(loop, "load"):
        place, mask, _ = access(call)
        parts = [part for part in ast.walk(mask) if part not in ends] if mask else []
        own = {n.id for end in ends for n in ast.walk(end) if isinstance(n, ast.Name)}
        read = {part.id for part in parts if isinstance(part, ast.Name)} - own
        if place is not None and names_read(place) & along and not read & along:
            return True
    return False


def _placed(found: RowKernel, early: str) -> str:
    loop = found.loops[0]
    size = _size(loop)
    lines = (
        f"row_start = {early}",
        f"head = ({ALIGNED} - row_start % {ALIGNED}) % {ALIGNED}",
        f"tiles = ({size} - head) // {found.block}",
    )
    return "".join(f"{' ' * loop.col_offset}{line}\n" for line in lines)


def _size(loop: ast.For) -> str:
    assert isinstance(loop.iter, ast.Call)
    return ast.unparse(loop.iter.args[1])


def _written(text: TritonText, found: RowKernel, each: _Loop) -> str:
    """Return a loop over whole blocks, and one over what is left."""
    loop, block, variable = each.loop, found.block, text.of(each.loop.target)
    spot, name, size = text.of(each.spot), ast.unparse(each.index.targets[0]), _size(each.loop)
    masks = bounds(loop, each.names, {size})
    aligned = {a.place: a for a in accesses(loop, each.names) if a.start == each.start}
    is_flat = isinstance(each.range, ast.Call)
    hint, shape = aligned_by(is_flat), f"[{block}]" if is_flat else f"[1, {block}]"

    def whole(node: ast.AST) -> str | None:
        if node in masks:
            return f"tl.full({shape}, True, tl.int1)"
        return aligned[node].told(hint) if node in aligned else None

    indent = " " * loop.col_offset

    def lines(place: list[str], become: Callable[[ast.AST], str | None]) -> Iterator[str]:
        deeper = " " * loop.body[0].col_offset
        for step in loop.body:
            own = place if step is each.index else [text.rendered(step, become)]
            yield from (deeper + line for line in own)

    rest = [
        f"rest = {variable} + {spot}",
        f"{name} = tl.where(rest < head, rest, rest + tiles * {block})",
    ]
    return "\n".join(
        [
            f"for {variable} in range(0, tiles * {block}, {block}):",
            *lines([f"{name} = head + {variable} + {spot}"], whole),
            f"{indent}for {variable} in range(0, {size} - tiles * {block}, {block}):",
            *lines(rest, lambda node: None),
        ]
    )
