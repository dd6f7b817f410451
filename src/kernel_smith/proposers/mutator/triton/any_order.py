"""May the iterations of a loop come in any order? Sums may then differ in the last digits."""

from __future__ import annotations

import ast
from collections.abc import Callable

from kernel_smith.proposers.mutator.triton.aligned import names_read, names_stored
from kernel_smith.proposers.mutator.triton.launching import pointer_of
from kernel_smith.proposers.mutator.triton.text import calls
from kernel_smith.proposers.mutator.triton.values import called

_EXTREMES = ("maximum", "minimum")
_TOGETHER = ("online_softmax_combine", "maximum_with_index", "minimum_with_index")


def runs_in_any_order(loop: ast.For, may_meet: Callable[[str, str], bool]) -> bool:
    """Is all that goes from one iteration to the next a sum, an extreme or the like?"""
    return _only_accumulates(loop) and stores_apart(loop, may_meet)


def _only_accumulates(loop: ast.For) -> bool:
    running = carried_by(loop)
    for statement in loop.body:
        if not names_read(statement) & running and not _adds_to(statement, running):
            continue
        if not _accumulates(statement, running):
            return False
        running |= set(names_stored(statement))
    return True


def carried_by(loop: ast.For) -> set[str]:
    """Names that an iteration reads as the one before has left them."""
    return read_early(loop.body) & {name for step in loop.body for name in names_stored(step)}


def read_early(statements: list[ast.stmt]) -> set[str]:
    """Names that statements read before they store to them."""
    stored: set[str] = set()
    early: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.For):
            early |= (read_early(statement.body) | names_read(statement.iter)) - stored
            continue  # it may not run at all
        read = names_read(statement)
        if isinstance(statement, ast.AugAssign):
            read |= set(names_stored(statement))
        early |= read - stored
        stored |= set(names_stored(statement))
    return early


def _adds_to(statement: ast.stmt, running: set[str]) -> bool:
    return isinstance(statement, ast.AugAssign) and bool(set(names_stored(statement)) & running)


def _accumulates(statement: ast.stmt, running: set[str]) -> bool:
    def is_one(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in running

    def is_new(node: ast.expr) -> bool:
        return not names_read(node) & running

    match statement:
        case ast.AugAssign(op=ast.Add(), value=value):
            return is_new(value)
        case ast.Assign(targets=[ast.Name()], value=ast.Name()):
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.BinOp(left=a, op=ast.Add(), right=b)):
            return (is_one(a) and is_new(b)) or (is_new(a) and is_one(b))
        case ast.Assign(targets=[ast.Name()], value=ast.Call(args=[a, b]) as call) if (
            called(call) in _EXTREMES
        ):
            return (is_one(a) and is_new(b)) or (is_new(a) and is_one(b))
        case ast.Assign(targets=[ast.Name()], value=ast.Call(args=[mask, a, b]) as call) if (
            called(call) == "where"
        ):
            return is_new(mask) and is_one(a) and is_one(b)
        case ast.Assign(targets=[ast.Tuple()], value=ast.Call(args=[a, b, *rest]) as call):
            together = called(call) in _TOGETHER and is_one(a) and is_one(b)
            return together and all(map(is_new, rest))
    return False


def stores_apart(loop: ast.For, may_meet: Callable[[str, str], bool]) -> bool:
    """Does no iteration read what another one stores?"""
    if any(called(node).startswith("atomic") for node in ast.walk(loop)):
        return False
    loaded, stored = calls(loop, "load"), calls(loop, "store")
    return all(are_apart(one, other, may_meet) for one in stored for other in loaded)


def are_apart(store: ast.Call, load: ast.Call, may_meet: Callable[[str, str], bool]) -> bool:
    """Do a store and a load never touch the same memory?"""
    written, read = pointer_of(store), pointer_of(load)
    if written is None or read is None:
        return False
    return written != read and not may_meet(written, read)
