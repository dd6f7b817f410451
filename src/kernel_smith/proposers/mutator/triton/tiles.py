"""The edit that has several tiles of a loop on their way before the first of them is worked on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernel_smith.proposers.mutator.edit import Site
from kernel_smith.proposers.mutator.triton.aligned import names_read, names_stored
from kernel_smith.proposers.mutator.triton.any_order import (
    are_apart,
    carried_by,
    read_early,
    stores_apart,
)
from kernel_smith.proposers.mutator.triton.launching import Launch, launches_of, may_meet
from kernel_smith.proposers.mutator.triton.loops import is_flat
from kernel_smith.proposers.mutator.triton.text import TritonText, calls, triton_edit

_IN_FLIGHT = (2, 4)


@triton_edit(
    "tiles-in-flight",
    "Load several tiles of a loop before the first of them is worked on.",
    together=True,
    told=("two tiles in flight",),
)
def tiles_in_flight(text: TritonText) -> Iterator[Site]:
    for kernel in text.kernels:
        launches = launches_of(text, kernel)
        if launches is None or not is_flat(kernel):
            continue

        def meet(one: str, other: str, launches: list[Launch] = launches) -> bool:
            return may_meet(launches, one, other)

        loops = [each for each in kernel.body if isinstance(each, ast.For)]
        for number, loop in enumerate(loops, start=1):
            tiled = _tiled(kernel, loop, meet)
            if tiled is None:
                continue
            for tiles in _IN_FLIGHT:
                change = text.replaced(loop, _written(text, tiled, tiles))
                yield Site(f"loop no. {number} of {kernel.name}", (change,), f"{tiles} tiles")


@dataclass(frozen=True, eq=False)
class _Tiled:
    """A loop, and those of its statements that load and say where. `own`: names of one tile."""

    loop: ast.For
    size: str
    step: str
    loading: list[ast.stmt]
    own: set[str]


def _tiled(
    kernel: ast.FunctionDef, loop: ast.For, meet: Callable[[str, str], bool]
) -> _Tiled | None:
    match loop.iter:
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=0), size], keywords=[]):
            step = "1"
        case ast.Call(
            func=ast.Name(id="range"),
            args=[ast.Constant(value=0), size, ast.Name(id=step)],
            keywords=[],
        ):
            pass
        case _:
            return None
    carried = carried_by(loop)
    stored = [name for step in loop.body for name in names_stored(step)]
    own = set(stored) - carried
    after = kernel.body[kernel.body.index(loop) + 1 :]
    loading = _loading(loop, carried, meet)
    if own & read_early(after) or len(stored) != len(set(stored)) or not loading:
        return None
    if len(loading) == len(loop.body) or not stores_apart(loop, meet):
        return None
    return _Tiled(loop, ast.unparse(size), step, loading, own)


def _loading(loop: ast.For, carried: set[str], meet: Callable[[str, str], bool]) -> list[ast.stmt]:
    """Return the statements that load and those that say where from, but for what waits for the
    tile before."""
    makers = {name: step for step in loop.body for name in names_stored(step)}
    found: set[ast.stmt] = set()
    stores: list[ast.Call] = []
    for step in loop.body:
        needed = _needed(step, makers)
        waits = any(names_read(each) & carried for each in needed)
        behind = any(
            not are_apart(one, other, meet) for one in stores for other in calls(step, "load")
        )
        if calls(step, "load") and isinstance(step, ast.Assign) and not waits and not behind:
            found |= needed
        stores += calls(step, "store")
    return [step for step in loop.body if step in found]


def _needed(step: ast.stmt, makers: dict[str, ast.stmt]) -> set[ast.stmt]:
    """Return a statement and all of the loop that it needs."""
    found, open_steps = {step}, [step]
    while open_steps:
        for name in names_read(open_steps.pop()):
            maker = makers.get(name)
            if maker is not None and maker not in found:
                found.add(maker)
                open_steps.append(maker)
    return found


def _written(text: TritonText, tiled: _Tiled, tiles: int) -> str:
    loop, step, size = tiled.loop, tiled.step, f"({tiled.size})"
    variable = text.of(loop.target)
    length = str(tiles) if step == "1" else f"({tiles} * {step})"
    whole = f"{size} // {length} * {length}"
    working = [each for each in loop.body if each not in tiled.loading]

    def lines(steps: list[ast.stmt], number: int) -> Iterator[str]:
        def of_tile(node: ast.AST) -> str | None:
            if not isinstance(node, ast.Name) or number == 0:
                return None
            if node.id == variable:
                return (
                    f"({variable} + {number})"
                    if step == "1"
                    else f"({variable} + {number} * {step})"
                )
            return f"{node.id}_tile{number}" if node.id in tiled.own else None

        indent = " " * loop.body[0].col_offset
        yield from (indent + text.rendered(each, of_tile) for each in steps)

    return "\n".join(
        [
            f"for {variable} in range(0, {whole}, {length}):",
            *(line for number in range(tiles) for line in lines(tiled.loading, number)),
            *(line for number in range(tiles) for line in lines(working, number)),
            f"{' ' * loop.col_offset}for {variable} in range({whole}, {tiled.size}, {step}):",
            *lines(loop.body, 0),
        ]
    )
