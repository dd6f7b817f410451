"""Makes a buffer in the shape in which it is returned or read, under one name.

The compiler allocates `(rows, 1)` where it keeps the dimension that was reduced, takes a view of
`(rows,)`, and calls memory by another name where it is used again. Kernels are given an address,
and see nothing of it. The view takes a CPU several microseconds, as long as many a kernel.
"""

from __future__ import annotations

import ast
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from kernel_smith.proposers.seed.library_calls import contiguous_strides

_VIEW = "reinterpret_tensor"


def made_as_seen(body: Sequence[ast.stmt], kernels: set[str]) -> list[ast.stmt]:
    """Return the statements without views of buffers that are seen in one shape alone."""
    statements = list(body)
    for statement in statements:
        if isinstance(statement, ast.With):
            statement.body = made_as_seen(statement.body, kernels)
    views, others = _uses(statements, kernels)
    needless: set[ast.Call] = set()
    for name, allocation in _allocations(statements):
        shapes = {tuple(map(ast.unparse, _shape(view))) for view in views[name] or [allocation]}
        if others[name] or len(shapes) != 1:
            continue
        if views[name] and _is_whole(views[name][0], allocation):
            allocation.args[:2] = _shape(views[name][0])
            needless.update(views[name])
        elif not views[name] and _is_whole(allocation, allocation):
            size = ast.literal_eval(allocation.args[0])
            allocation.args[1] = ast.parse(repr(contiguous_strides(size)), mode="eval").body
    return _with_one_name([_Plain(needless).visit(statement) for statement in statements])


def _allocations(statements: list[ast.stmt]) -> Iterator[tuple[str, ast.Call]]:
    for statement in statements:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=function)) as call
            ) if function.startswith("empty_strided_"):
                yield name, call


def _uses(
    statements: list[ast.stmt], kernels: set[str]
) -> tuple[defaultdict[str, list[ast.Call]], Counter[str]]:
    """Return the views of each buffer, and how often it is used in another way than by these and
    by kernels."""
    views: defaultdict[str, list[ast.Call]] = defaultdict(list)
    others: Counter[str] = Counter()
    for node in (node for statement in statements for node in ast.walk(statement)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                others[name] += 1
            case ast.Call(func=ast.Name(id=called), args=[ast.Name(id=name), *_]) if (
                called == _VIEW
            ):
                views[name].append(node)
                others[name] -= 1
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(value=ast.Name(id=called))) if (
                called in kernels
            ):
                others.subtract(one.id for one in node.args if isinstance(one, ast.Name))
    return views, others


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

    def __init__(self, views: set[ast.Call]) -> None:
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
    newer: dict[str, str] = {}
    kept: list[ast.stmt] = []
    for statement in statements:
        match [*kept[-1:], statement]:
            case [
                ast.Assign(targets=[ast.Name(id=new)], value=ast.Name(id=old)),
                ast.Delete(targets=[ast.Name(id=deleted)]),
            ] if old == deleted and old in made:
                newer[old] = new
                kept.pop()
            case _:
                kept.append(statement)
    return [_Renamed(newer).visit(statement) for statement in kept]


class _Renamed(ast.NodeTransformer):
    """Gives variables other names, which may have others again."""

    def __init__(self, newer: dict[str, str]) -> None:
        self._newer = newer

    def visit_Name(self, node: ast.Name) -> ast.Name:
        name = node.id
        while name in self._newer:
            name = self._newer[name]
        return ast.Name(name, node.ctx)
