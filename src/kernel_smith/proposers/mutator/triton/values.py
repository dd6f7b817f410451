"""Which expressions of a kernel's straight text have the same value, by numbering values.

Two loads are the same if they read the same places and nothing was stored to that memory between
them. A load of what was stored before is what was stored.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from kernel_smith.proposers.mutator.triton.launching import pointer_of

_IMPURE = ("store", "atomic", "inline_asm", "rand", "debug_barrier")
# Calls whose result is as wide as the widest of what they are given.
_ELEMENTWISE = {"load", "to", "where", "broadcast_to", "abs", "exp", "maximum", "minimum", "rsqrt"}
_HINTS = {"eviction_policy", "cache_modifier"}  # of a load; they change no value


class _Stored(NamedTuple):
    pointer: str
    name: str
    number: int


class Values:
    """Reads statements one after the other. `may_meet`: whether two pointers may share memory."""

    def __init__(self, may_meet: Callable[[str, str], bool]) -> None:
        self._may_meet = may_meet
        self._numbers: dict[tuple[object, ...], int] = {}
        self._spread: dict[int, frozenset[int]] = {}
        self._now: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self._memory: dict[tuple[int, int], _Stored] = {}
        self._unique = 0

    def number(self, node: ast.AST | None) -> int:
        """Return a number that expressions share only if they have the same value here."""
        match node:
            case None:
                return self._numbered(("nothing",), ())
            case ast.Name(id=name):
                return self._now.get(name) or self._numbered(("outside", name), ())
            case ast.Constant(value=value):
                return self._numbered(("constant", type(value), value), ())
            case ast.Call() if called(node) == "load":
                return self._load(node)
            case ast.Call() if called(node).startswith(_IMPURE):
                return self._anew()
        parts = tuple(self.number(child) for child in ast.iter_child_nodes(node))
        key = (type(node), getattr(node, "attr", ""), getattr(node, "arg", ""), *parts)
        number = self._numbered(key, parts)
        if isinstance(node, ast.Call) and called(node) not in _ELEMENTWISE:
            self._spread[number] = frozenset([number] if called(node) == "arange" else [])
        return number

    def read(self, statement: ast.stmt) -> None:
        """Go on behind a statement that is not compound."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._now[name] = self.number(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._now[name] = self.number(value)
            case ast.Expr(value=ast.Call() as call) if called(call) == "store":
                self._store(call)
            case _:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        self._now[node.id] = self._anew()
                    if isinstance(node, ast.Call) and called(node).startswith(_IMPURE[:3]):
                        self._forget(pointer_of(node))

    def holds(self, name: str, number: int) -> bool:
        return self._now.get(name) == number

    def holder(self, number: int) -> str | None:
        """Return a name that has this value now."""
        return next((name for name, held in self._now.items() if held == number), None)

    def stored_at(self, load: ast.Call) -> str | None:
        """Return the name of what was stored at the places that are loaded, if it still holds
        that."""
        place, mask, _ = access(load)
        stored = self._memory.get((self.number(place), self.number(mask)))
        return stored.name if stored and self._now.get(stored.name) == stored.number else None

    def _load(self, call: ast.Call) -> int:
        pointer = pointer_of(call)
        others = {keyword.arg for keyword in call.keywords} - _HINTS - {"mask", "other"}
        if pointer is None or others or len(call.args) > 3:
            return self._anew()
        parts = tuple(self.number(part) for part in access(call))
        return self._numbered(("load", self._epochs.setdefault(pointer, 0), *parts), parts)

    def _store(self, call: ast.Call) -> None:
        pointer = pointer_of(call)
        self._forget(pointer)
        place, value, mask = stored(call)
        number, at = self.number(value), self.number(place)
        # A value that is spread over all places that it is stored to has the shape that is loaded.
        if pointer and isinstance(value, ast.Name) and self._spread[at] <= self._spread[number]:
            self._memory[at, self.number(mask)] = _Stored(pointer, value.id, number)

    def _forget(self, written: str | None) -> None:
        """What was read or stored where `written` points to may be something else now."""

        def is_met(pointer: str) -> bool:
            return written in (None, pointer) or self._may_meet(str(written), pointer)

        for pointer in filter(is_met, self._epochs):
            self._epochs[pointer] += 1
        self._memory = {at: held for at, held in self._memory.items() if not is_met(held.pointer)}

    def _numbered(self, key: tuple[object, ...], parts: tuple[int, ...]) -> int:
        number = self._numbers.setdefault(key, len(self._numbers) + 1)
        self._spread[number] = frozenset().union(*(self._spread[part] for part in parts))
        return number

    def _anew(self) -> int:
        self._unique += 1
        return self._numbered(("unique", self._unique), ())


def called(node: ast.AST) -> str:
    """Return the last word of what is called: `load` of `tl.load(...)`."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def access(load: ast.Call) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    """Place, mask and other value of a load."""
    given = {keyword.arg: keyword.value for keyword in load.keywords}
    place, mask, other = [*load.args, None, None, None][:3]
    return place, mask or given.get("mask"), other or given.get("other")


def stored(store: ast.Call) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    """Place, value and mask of a store."""
    given = {keyword.arg: keyword.value for keyword in store.keywords}
    place, value, mask = [*store.args, None, None, None][:3]
    return place, value or given.get("value"), mask or given.get("mask")
