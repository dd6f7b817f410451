"""What a candidate says of a kernel's launches: what each parameter is given, and whose memory."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from kernel_smith.proposers.mutator.triton.text import TritonText, calls

_FRESH = {"empty", "empty_like", "empty_strided", "zeros", "zeros_like", "full", "ones"}
_VIEWS = {"as_strided", "reshape", "view"}
OPTIONS = ("num_warps", "num_stages")  # of a launch; they are no parameters of its kernel
_OUTSIDE = "outside"  # inputs and parameters, which may share memory with one another
_STORES = ("store", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg")
_HARMLESS = {"range", "min", "max", "float", "int", "len"}


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch that is a statement of a function's own body."""

    call: ast.Call
    statement: ast.Expr
    function: ast.FunctionDef
    given: dict[str, ast.expr]
    parameters: frozenset[str]

    def has_plain_options(self) -> bool:
        """Are all its options numbers that are known here?"""
        options = self.given.keys() - self.parameters
        return options <= set(OPTIONS) and all(self.number(name) for name in options)

    def number(self, name: str) -> int | None:
        """Return the number that a parameter is given, where it is one as it stands."""
        match self.given.get(name):
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return value
        return None


def launches_of(text: TritonText, kernel: ast.FunctionDef) -> list[Launch] | None:
    """Return all launches of a kernel; None if one of them is not plain to see."""
    calls_of_kernel = text.launches(kernel.name)
    if calls_of_kernel is None or not _is_plain(kernel):
        return None
    found = [_launch(text, kernel, call) for call in calls_of_kernel]
    known = [launch for launch in found if launch is not None]
    return known if len(known) == len(found) else None


def _is_plain(kernel: ast.FunctionDef) -> bool:
    given = kernel.args
    special = (given.defaults, given.vararg, given.kwarg, given.kwonlyargs, given.posonlyargs)
    return len(kernel.decorator_list) == 1 and not any(special)


def _launch(text: TritonText, kernel: ast.FunctionDef, call: ast.Call) -> Launch | None:
    names = [argument.arg for argument in kernel.args.args]
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    given = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        given[keyword.arg] = keyword.value
    for function in text.functions:
        for statement in function.body:
            if isinstance(statement, ast.Expr) and statement.value is call:
                known = set(names) <= set(given)
                return Launch(call, statement, function, given, frozenset(names)) if known else None
    return None


def number_of(launches: Iterable[Launch], name: str) -> int | None:
    """Return the number that all launches give a parameter."""
    numbers = {launch.number(name) for launch in launches}
    return numbers.pop() if len(numbers) == 1 else None


def written_by(text: TritonText, kernel: ast.FunctionDef) -> set[str] | None:
    """Return the pointers that a kernel stores to; None if that is not plain to see."""
    stores = [call for name in _STORES for call in calls(kernel, name)]
    pointers = [pointer_of(call) for call in stores]
    found = {pointer for pointer in pointers if pointer is not None}
    known = all(pointers) and found <= {argument.arg for argument in kernel.args.args}
    return found if known and _writes_nothing_else(text, kernel) else None


def _writes_nothing_else(text: TritonText, kernel: ast.FunctionDef) -> bool:
    """Do no helpers store anything, nor anything but `tl.store` and its like?"""
    helpers = {each.name: each for each in text.kernels}
    for node in ast.walk(kernel):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in helpers:
                if any(calls(helpers[name], store) for store in _STORES):
                    return False
            case ast.Call(func=ast.Name(id=name)) if name not in _HARMLESS:
                return False
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr.startswith(
                ("store", "atomic", "inline_asm")
            ) and not _is_known(value, attr):
                return False
    return True


def _is_known(value: ast.expr, attribute: str) -> bool:
    return isinstance(value, ast.Name) and value.id == "tl" and attribute in _STORES


def pointer_of(access: ast.Call) -> str | None:
    """Return the pointer whose memory is read or written at `pointer + offsets`."""
    place = access.args[0] if access.args else None
    while isinstance(place, ast.BinOp) and isinstance(place.op, ast.Add):
        place = place.left
    return place.id if isinstance(place, ast.Name) else None


def are_apart(launch: Launch, written: str, other: str) -> bool:
    """Is the memory behind two parameters of a launch not the same, not even in part?"""
    return share_nothing(launch.function, launch.given[written], launch.given[other])


def may_meet(launches: Iterable[Launch], one: str, other: str) -> bool:
    """May two pointers share memory in a launch, one of which is written to?"""
    return any(_may_meet(launch, one, other) for launch in launches)


def _may_meet(launch: Launch, one: str, other: str) -> bool:
    known = {one, other} <= launch.parameters
    return not known or not (are_apart(launch, one, other) or are_apart(launch, other, one))


def share_nothing(function: ast.FunctionDef, written: ast.expr, other: ast.expr) -> bool:
    """The same of two expressions of a function, the first of which is written to."""
    ours, theirs = (_memory(function, each, set()) for each in (written, other))
    return _OUTSIDE not in ours and not ours & theirs


def _memory(function: ast.FunctionDef, value: ast.expr, seen: set[str]) -> frozenset[str]:
    """Tell where the memory of a value may have been allocated."""
    match value:
        case ast.Constant():
            return frozenset()
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name)) if name in _FRESH:
            return frozenset([f"line {value.lineno}, {value.col_offset}"])
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name)) if (
            name in _VIEWS and value.args
        ):
            return _memory(function, value.args[0], seen)
        case ast.Name(id=name):
            if name in seen:
                return frozenset()
            values = _assigned(function, name)
            own = [_memory(function, each, seen | {name}) for each in values]
            return frozenset().union(*own) if own else frozenset([_OUTSIDE])
    return frozenset([_OUTSIDE])


def _assigned(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    """Return all that a name stands for in a function; nothing if it may also be something else."""
    return _all_assigned(function).get(name, [])


@lru_cache(maxsize=16)
def _all_assigned(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """The same by name."""
    found: dict[str, list[ast.expr]] = {}
    times: Counter[str] = Counter()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            times[node.id] += 1
        if isinstance(node, ast.arg):
            times[node.arg] += 1
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            for name, value in _pairs(node):
                found.setdefault(name, []).append(value)
    return {name: values for name, values in found.items() if len(values) == times[name]}


def _pairs(node: ast.Assign) -> list[tuple[str, ast.expr]]:
    match node.targets[0], node.value:
        case ast.Name(id=name), value:
            return [(name, value)]
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            pairs = zip(targets, values, strict=True)
            return [(each.id, value) for each, value in pairs if isinstance(each, ast.Name)]
    return []
