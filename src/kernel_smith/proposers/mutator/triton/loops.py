"""The loops of a kernel that take a row block by block."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_smith.proposers.mutator.triton.launching import (
    Launch,
    launches_of,
    may_meet,
    number_of,
)
from kernel_smith.proposers.mutator.triton.text import TritonText, calls
from kernel_smith.proposers.mutator.triton.values import called

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)


@dataclass(frozen=True, eq=False)
class RowKernel:
    """A kernel whose loops are all `for v in range(0, size, BLOCK)`, over the same row."""

    kernel: ast.FunctionDef
    launches: list[Launch]
    loops: list[ast.For]
    block: str
    size: int

    @property
    def block_now(self) -> int | None:
        return number_of(self.launches, self.block)

    def may_meet(self, one: str, other: str) -> bool:
        return may_meet(self.launches, one, other)

    def is_only_a_length(self) -> bool:
        """Does the block's size say nothing but how long ranges and tiles are?"""
        headers = [loop.iter for loop in self.loops]
        lengths = set()
        for node in ast.walk(self.kernel):
            match node:
                case ast.Call() if node in headers or called(node) == "arange":
                    lengths |= set(node.args)
                case ast.List(elts=sizes) | ast.Tuple(elts=sizes):
                    lengths |= set(sizes)
        names = [node for node in ast.walk(self.kernel) if isinstance(node, ast.Name)]
        return lengths >= {name for name in names if name.id == self.block}

    def rows_at_once(self) -> int | None:
        return rows_at_once(self.kernel, self.launches, self.block)


def rows_at_once(kernel: ast.FunctionDef, launches: list[Launch], block: str) -> int | None:
    """Return the elements of a tile along its other axes, of which a block is the last."""
    product = 1
    for name in {ast.unparse(call.args[-1]) for call in calls(kernel, "arange")} - {block}:
        number = number_of(launches, name)
        if number is None:
            return None
        product *= number
    return product


def row_kernels(text: TritonText) -> Iterator[RowKernel]:
    for kernel in text.kernels:
        launches = launches_of(text, kernel)
        loops = [node for node in kernel.body if isinstance(node, ast.For)]
        if launches is None or not loops or not is_flat(kernel):
            continue
        steps = {_step(loop) for loop in loops}
        if len(steps) != 1 or None in steps:
            continue
        (step,) = steps
        assert step is not None
        size = number_of(launches, step[0]) if not step[0].isdigit() else int(step[0])
        if size is not None and size > 0 and number_of(launches, step[1]) is not None:
            yield RowKernel(kernel, launches, loops, step[1], size)


def is_flat(kernel: ast.FunctionDef) -> bool:
    """Is a kernel nothing but simple statements and loops of such?"""
    statements = kernel.body[1:] if _has_docstring(kernel) else kernel.body
    flat = [s for each in statements for s in (each.body if isinstance(each, ast.For) else [each])]
    loops = [each for each in statements if isinstance(each, ast.For)]
    plain = all(not loop.orelse and loop.body[0].lineno > loop.iter.lineno for loop in loops)
    plain &= all(loop.lineno == loop.iter.end_lineno for loop in loops)
    # A statement is indented line by line, so none may hold text that goes over several lines.
    texts = [node for node in ast.walk(kernel) if isinstance(node, ast.Constant)]
    one_line = all(node.lineno == node.end_lineno for node in texts)
    return plain and one_line and all(isinstance(each, _SIMPLE) for each in flat)


def _has_docstring(kernel: ast.FunctionDef) -> bool:
    return ast.get_docstring(kernel) is not None


def _step(loop: ast.For) -> tuple[str, str] | None:
    """Size and block of `for v in range(0, size, BLOCK)`."""
    match loop.target, loop.iter:
        case ast.Name(), ast.Call(func=ast.Name(id="range"), args=[begin, size, end], keywords=[]):
            sizes = ast.unparse(begin), ast.unparse(size), ast.unparse(end)
            plain = sizes[0] == "0" and isinstance(size, ast.Name | ast.Constant)
            return sizes[1:] if plain and isinstance(end, ast.Name) else None
    return None
