"""Makes a buffer in the shape in which it is returned or read, under one name.

The compiler allocates `(rows, 1)` where it keeps the dimension that was reduced, takes a view of
`(rows,)`, and calls memory by another name where it is used again. Kernels are given an address,
and see nothing of it. The view takes a CPU several microseconds, as long as many a kernel.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kernel_smith.proposers.seed.library_calls import contiguous_strides

_VIEW = "reinterpret_tensor"


class _Uses(NamedTuple):
    """What is done with a buffer beside giving it to kernels."""

    views: list[ast.Call]
    others: int


def made_as_seen(body: Sequence[ast.stmt], kernels: set[str]) -> list[ast.stmt]:
    """Return the statements without views of buffers that are seen in one shape alone."""
    statements = list(body)
    for statement in statements:
        if isinstance(statement, ast.With):
            statement.body = made_as_seen(statement.body, kernels)
    for name, allocation in list(_allocations(statements)):
        views, others = _uses(name, statements, kernels)
        shapes = {tuple(map(ast.unparse, _shape(view))) for view in views or [allocation]}
        if others or len(shapes) != 1:
            continue
        if views and _is_whole(views[0], allocation):
            allocation.args[:2] = _shape(views[0])
            statements = [_Plain(views).visit(statement) for statement in statements]
        elif not views and _is_whole(allocation, allocation):
            size = ast.literal_eval(allocation.args[0])
            allocation.args[1] = ast.parse(repr(contiguous_strides(size)), mode="eval").body
    return _with_one_name(statements)


def _allocations(statements: list[ast.stmt]) -> Iterator[tuple[str, ast.Call]]:
    for statement in statements:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=function)) as call
            ) if function.startswith("empty_strided_"):
                yield name, call


def _uses(name: str, statements: list[ast.stmt], kernels: set[str]) -> _Uses:
    loads = 0
    views = []
    for node in (node for statement in statements for node in ast.walk(statement)):
        match node:
            case ast.Name(id=found, ctx=ast.Load()) if found == name:
                loads += 1
            case ast.Call(func=ast.Name(id=called), args=[ast.Name(id=found), *_]) if (
                found == name and called == _VIEW
            ):
                views.append(node)
                loads -= 1
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(value=ast.Name(id=called))) if (
                called in kernels
            ):
                loads -= sum(isinstance(a, ast.Name) and a.id == name for a in node.args)
    return _Uses(views, loads)


def _shape(call: ast.Call) -> list[ast.expr]:
    """Return sizes and strides of a view or an allocation."""
    first = 1 if _is_view(call) else 0
    return call.args[first : first + 2]


def _is_view(call: ast.Call) -> bool:
    return ast.unparse(call.func) == _VIEW


def _is_whole(call: ast.Call, allocation: ast.Call) -> bool:
    """Does it hold each element of the memory that is allocated once?"""
    sizes, strides = map(ast.literal_eval, _shape(call))
    expected = 1
    for stride, size in sorted((t, s) for s, t in zip(sizes, strides, strict=True) if s != 1):
        if stride != expected:
            return False
        expected *= size
    begins = ast.literal_eval(call.args[3]) if _is_view(call) else 0
    return begins == 0 and math.prod(ast.literal_eval(allocation.args[0])) == expected


class _Plain(ast.NodeTransformer):
    """Puts buffers in the place of their views."""

    def __init__(self, views: list[ast.Call]) -> None:
        self._views = views

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if node in self._views:
            return node.args[0]
        self.generic_visit(node)
        return node


def _with_one_name(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Call memory by its last name where the others are forgotten at once."""
    targets = [one.targets[0] for one in statements if isinstance(one, ast.Assign)]
    made = {target.id for target in targets if isinstance(target, ast.Name)}
    index = 0
    while index + 1 < len(statements):
        match statements[index : index + 2]:
            case [
                ast.Assign(targets=[ast.Name(id=new)], value=ast.Name(id=old)),
                ast.Delete(targets=[ast.Name(id=deleted)]),
            ] if old == deleted and old in made:
                del statements[index : index + 2]
                statements = [_Renamed(old, new).visit(one) for one in statements]
            case _:
                index += 1
    return statements


class _Renamed(ast.NodeTransformer):
    """Gives a variable another name."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._new, node.ctx) if node.id == self._old else node
