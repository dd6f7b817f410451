"""The edit that takes a row's maximum and its sum of powers in one pass instead of two."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.triton.aligned import names_read, names_stored
from kernel_smith.proposers.mutator.triton.loops import RowKernel, row_kernels
from kernel_smith.proposers.mutator.triton.text import TritonText, triton_edit
from kernel_smith.proposers.mutator.triton.values import Values, called

_EACH_THREAD = 8  # elements of a block for one thread, at most
_HELPERS = "from torch._inductor.runtime import triton_helpers"


@triton_edit(
    "one-pass-softmax",
    "Take the maximum of a row and the sum of its powers in one pass, in which the sum is scaled "
    "where the maximum grows. Sums may differ in the last digits.",
    together=True,
)
def one_pass_softmax(text: TritonText) -> Iterator[Site]:
    if _HELPERS not in text.text:
        return
    for found in row_kernels(text):
        for first, second in pairwise(found.loops):
            passes = _passes(found, first, second)
            if passes is not None:
                changes = (*_merged(text, passes), *_shorter_blocks(text, found))
                yield Site(f"{found.kernel.name}, rows of {found.size}", changes)


@dataclass(frozen=True, eq=False)
class _Fold:
    """`new = old (and) value`, then `old = where(mask, new, old)`, at the end of a loop."""

    by: str
    new: str
    old: str
    value: ast.expr
    mask: ast.expr
    step: ast.stmt
    choice: ast.stmt


@dataclass(frozen=True, eq=False)
class _Passes:
    """Two loops, where the sum begins, and the statements that make one value of each row."""

    first: ast.For
    second: ast.For
    largest: _Fold
    total: _Fold
    begun: ast.stmt
    top: ast.stmt
    whole: ast.stmt


def _passes(found: RowKernel, first: ast.For, second: ast.For) -> _Passes | None:
    largest, total = _fold(first), _fold(second)
    body = found.kernel.body
    before, after = body[: body.index(second)], body[body.index(second) + 1 :]
    between = before[body.index(first) + 1 :]
    if largest is None or total is None or (largest.by, total.by) != ("maximum", "+"):
        return None
    top = _only(between, f"= triton_helpers.max2({largest.old}, 1)[:, None]")
    whole = _only(after[:1], f"= tl.sum({total.old}, 1)[:, None]")
    begun = _only(before, f"{total.old} = tl.full([", "], 0, tl.float32)")
    if top is None or whole is None or begun is None or {*between} - {top, begun}:
        return None
    passes = _Passes(first, second, largest, total, begun, top, whole)
    return passes if _are_powers_of_the_same(found, passes) else None


def _only(statements: list[ast.stmt], *parts: str) -> ast.stmt | None:
    """Return the only assignment that says all this."""
    found = [s for s in statements if isinstance(s, ast.Assign) and _says(ast.unparse(s), parts)]
    return found[0] if len(found) == 1 else None


def _says(text: str, parts: tuple[str, ...]) -> bool:
    return all(part in text for part in parts) and text.endswith(parts[-1])


def _fold(loop: ast.For) -> _Fold | None:
    match loop.body[-2:]:
        case [
            ast.Assign(targets=[ast.Name(id=new)], value=combined) as step,
            ast.Assign(
                targets=[ast.Name(id=old)],
                value=ast.Call(args=[mask, ast.Name(id=chosen), ast.Name(id=kept)]) as where,
            ) as choice,
        ] if called(where) == "where" and (chosen, kept) == (new, old):
            pass
        case _:
            return None
    match combined:
        case ast.Call(args=[ast.Name(id=one), value]) if called(combined) == "maximum":
            by = "maximum"
        case ast.BinOp(left=ast.Name(id=one), op=ast.Add(), right=value):
            by = "+"
        case _:
            return None
    fold = _Fold(by, new, old, value, mask, step, choice)
    return fold if one == old and _is_all(loop, fold) else None


def _is_all(loop: ast.For, fold: _Fold) -> bool:
    """Does the loop do nothing else that lasts?"""
    others = loop.body[:-2]
    touched = any({fold.old, fold.new} & names_read(step) for step in others)
    stores = any(called(n).startswith(("store", "atomic")) for n in ast.walk(loop))
    stored = names_stored(loop)
    return not touched and not stores and len(set(stored)) == len(stored)


def _are_powers_of_the_same(found: RowKernel, passes: _Passes) -> bool:
    """Is what is added up the exponential of what the maximum is taken of, less the maximum?"""
    values = Values(found.may_meet)
    body = found.kernel.body
    for statement in body[: body.index(passes.first)]:
        if isinstance(statement, ast.For):
            return False
        values.read(statement)
    for step in passes.first.body[:-2]:
        values.read(step)
    compared = values.number(_unspread(passes.first, passes.largest.value))
    mask = values.number(passes.largest.mask)
    for step in passes.second.body[:-2]:
        values.read(step)
    match _unspread(passes.second, passes.total.value):
        case ast.Call(args=[power], keywords=[]) as call if ast.unparse(call.func) == "tl.exp":
            less = _unspread(passes.second, power)
        case _:
            return False
    match less:
        case ast.BinOp(left=value, op=ast.Sub(), right=ast.Name(id=top)):
            same = values.number(_unspread(passes.second, value)) == compared
            largest = top in names_stored(passes.top) and mask == values.number(passes.total.mask)
            return same and largest and _ends_there(found, passes)
    return False


def _unspread(loop: ast.For, node: ast.expr) -> ast.expr:
    """Return what a name of the loop stands for, without what only repeats it along an axis."""
    values = {
        ast.unparse(step.targets[0]): step.value
        for step in loop.body
        if isinstance(step, ast.Assign)
    }
    while True:
        match node:
            case ast.Name(id=name) if name in values:
                node = values[name]
            case ast.Call(args=[ast.Name() as inner, _]) if called(node) == "broadcast_to":
                node = inner
            case _:
                return node


def _ends_there(found: RowKernel, passes: _Passes) -> bool:
    """Is nothing of the second loop read behind it but the sum?"""
    body = found.kernel.body
    after = {name for each in body[body.index(passes.second) + 1 :] for name in names_read(each)}
    return not (set(names_stored(passes.second)) - {passes.total.old}) & after


def _shorter_blocks(text: TritonText, found: RowKernel) -> Iterator[Splice]:
    """Each element needs two registers more than before, and a long block has too many."""
    for launch in found.launches if found.is_only_a_length() else []:
        warps, block = launch.number("num_warps"), launch.number(found.block)
        if warps is not None and block is not None and block > (most := _EACH_THREAD * 32 * warps):
            yield text.replaced(launch.given[found.block], str(most))


def _merged(text: TritonText, passes: _Passes) -> Iterator[Splice]:
    largest, total = passes.largest, passes.total
    indent = " " * passes.first.col_offset
    at = text.line_start(passes.first.lineno)
    yield text.without(passes.begun)
    yield Splice(at, at, f"{indent}{text.of(passes.begun)}\n")
    value, mask = text.of(largest.value), text.of(largest.mask)
    folded = f"triton_helpers.online_softmax_combine({largest.old}, {total.old}, {value}, True)"
    yield text.replaced(largest.step, f"{largest.new}, {total.new} = {folded}")
    kept = f"{total.old} = tl.where({mask}, {total.new}, {total.old})"
    deeper = " " * passes.first.body[0].col_offset
    yield text.replaced(largest.choice, f"{text.of(largest.choice)}\n{deeper}{kept}")
    yield text.without(passes.top)
    yield text.without(passes.second)
    top, whole = names_stored(passes.top)[0], names_stored(passes.whole)[0]
    reduced = f"triton_helpers.online_softmax_reduce({largest.old}, {total.old}, 1, True)"
    lines = (
        f"{top}, {whole} = {reduced}",
        f"{top} = {top}[:, None]",
        f"{whole} = {whole}[:, None]",
    )
    yield text.replaced(passes.whole, f"\n{indent}".join(lines))
