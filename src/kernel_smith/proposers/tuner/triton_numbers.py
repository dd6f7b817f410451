"""Tunable numbers of Triton candidates: launches, autotuner configurations, defaults, loops.

A number at a launch may be repeated in its grid, or where buffers are sized: `cdiv(n, 1024)` beside
`BLOCK=1024`. Equal numbers are then taken for the same one and change together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from kernel_smith.proposers.tuner.draft import Draft, Entry, Listed
from kernel_smith.proposers.tuner.numbers import constant_role, is_for_speed, option_role
from kernel_smith.proposers.tuner.positions import Positions
from kernel_smith.proposers.tuner.scope import Scopes, integer, last_name
from kernel_smith.proposers.tuner.space import Binding, Role
from kernel_smith.proposers.tuner.triton_kernels import (
    STAGES,
    Kernel,
    Launch,
    autotuned,
    defaults,
    find_kernels,
    find_launches,
)

# Smaller numbers stand for too many things to be taken for a block's size.
_SMALLEST_LOOSE = 16
# Kernels of our own that seeds carry (`seed/templates`): all else that these are given are sizes,
# and SPLITS says how much memory there is for parts.
_OF_SEEDS = re.compile(r"(multiply|turn|convolve|convolve_apart|attend|attend_join)(_\w+)?")
_OF_SEEDS_FOR_SPEED = re.compile(r"BLOCK_\w+|BLOCK|GROUP")


class TritonNumbers:
    """Adds the numbers of one syntax tree to a draft."""

    def __init__(
        self, tree: ast.Module, positions: Positions, draft: Draft, declared: frozenset[str]
    ) -> None:
        self._tree = tree
        self._positions = positions
        self._draft = draft
        self._declared = declared
        self._scopes = Scopes(tree)

    def collect(self) -> None:
        kernels = find_kernels(self._tree)
        launches = list(find_launches(self._tree, kernels, self._scopes))
        taken = [self._at_launch(launch, site) for site, launch in enumerate(launches)]
        for launch, entries in zip(launches, taken, strict=True):
            for counted in (launch.grid, *_counted_alike(launch)):
                self._couple(entries, _sizes(counted, 2))
        self._couple_loose(launches, taken)
        given = {(launch.kernel.name, name) for launch in launches for name in launch.given}
        for site, kernel in enumerate(kernels.values(), start=len(launches)):
            for name, default in defaults(kernel):
                if (kernel.name, name) not in given:
                    self._take(name, default, Binding(site, kernel.name, name))
            if listed := autotuned(kernel, self._scopes):
                self._configurations(listed, site, kernel)
        self._loops()

    def _at_launch(self, launch: Launch, site: int) -> list[Entry]:
        """Return the tile sizes among what a launch gives; the rest is taken, too."""
        found = []
        for name, expression in launch.given.items():
            if name == STAGES and not launch.kernel.loops:
                continue
            if _is_size_in_seed(launch.kernel.name, name):
                continue
            binding = Binding(site, launch.kernel.name, name)
            for literal in _alternatives(self._scopes.value(expression)):
                found += self._take(name, literal, binding)
        return [entry for entry in found if entry.role is Role.TILE]

    def _take(self, name: str, node: ast.expr, *bindings: Binding) -> list[Entry]:
        value = integer(node)
        if value is None or not self._wanted(name, value):
            return []
        entry = Entry(name, option_role(name) or constant_role(name), value)
        return [self._draft.add(self._positions.span(node), entry, *bindings)]

    def _wanted(self, name: str, value: int) -> bool:
        known = option_role(name) is not None or name in self._declared
        return value > 0 and (known or is_for_speed(name, value))

    def _couple_loose(self, launches: list[Launch], taken: list[list[Entry]]) -> None:
        by_function: dict[ast.AST, list[Entry]] = {}
        for launch, entries in zip(launches, taken, strict=True):
            function = self._scopes.enclosing(launch.call)[0]
            if not isinstance(function, ast.Module):
                by_function.setdefault(function, []).extend(entries)
        for function, entries in by_function.items():
            self._couple(entries, _sizes(function, _SMALLEST_LOOSE))

    def _couple(self, entries: list[Entry], literals: Iterable[ast.Constant]) -> None:
        for literal in literals:
            span = self._positions.span(literal)
            present = self._draft.entries()
            same = [e for e in entries if e.current == literal.value and e in present]
            if same and not self._draft.knows(span):
                self._draft.couple(self._draft.merge(same), span)

    def _configurations(self, listed: ast.List, site: int, kernel: Kernel) -> None:
        """A list of `triton.Config`, if all of them are literal and of the same form."""
        forms = [_configuration(element) for element in listed.elts]
        if not forms or not all(forms):
            return
        names = [name for name, node in forms[0].items() if self._wanted(name, integer(node) or 0)]
        names = [name for name in names if name != STAGES or kernel.loops]
        # As they stand in the text, since that is how they are written back.
        names.sort(key=lambda name: self._positions.span(forms[0][name]))
        rows = [tuple(integer(form.get(name)) or 0 for name in names) for form in forms]
        if not names or not all(value > 0 for row in rows for value in row):
            return
        entries = []
        for name, value in zip(names, rows[0], strict=True):
            entry = Entry(name, option_role(name) or constant_role(name), value)
            entry.bindings.append(Binding(site, kernel.name, name))
            entries.append(entry)
        first, last = listed.elts[0], listed.elts[-1]
        span = self._positions.span(first)[0], self._positions.span(last)[1]
        pieces = self._pieces(first, [forms[0][name] for name in names])
        self._draft.add_list(Listed(span, pieces, tuple(entries), tuple(rows[1:])))

    def _pieces(self, whole: ast.expr, cuts: list[ast.expr]) -> tuple[str, ...]:
        """Return the text of a node with the texts of some nodes inside cut out."""
        begin, _ = self._positions.span(whole)
        text = self._positions.text(whole)
        pieces, at = [], 0
        for left, right in sorted(self._positions.span(cut) for cut in cuts):
            pieces.append(text[at : left - begin])
            at = right - begin
        return (*pieces, text[at:])

    def _loops(self) -> None:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and last_name(node) == "range":
                for word in node.keywords:
                    role = option_role(word.arg or "")
                    value = integer(word.value)
                    if role is not None and value:
                        entry = Entry(f"range_{word.arg}", role, value)
                        self._draft.add(self._positions.span(word.value), entry)


def _counted_alike(launch: Launch) -> list[ast.expr]:
    """Arguments that say how many programs there are, in the words of the grid."""
    in_grid = {ast.dump(node) for node in ast.walk(launch.grid)}
    values = [word.value for word in launch.call.keywords]
    counts = [value for value in values if isinstance(value, ast.Call | ast.BinOp)]
    return [value for value in counts if ast.dump(value) in in_grid]


def _is_size_in_seed(kernel: str, name: str) -> bool:
    for_speed = option_role(name) is not None or _OF_SEEDS_FOR_SPEED.fullmatch(name)
    return not for_speed and _OF_SEEDS.fullmatch(kernel) is not None


def _configuration(node: ast.expr) -> dict[str, ast.expr]:
    """Return what a `triton.Config` sets; nothing for anything else."""
    if not isinstance(node, ast.Call) or last_name(node) != "Config" or len(node.args) != 1:
        return {}
    if not isinstance(node.args[0], ast.Dict):
        return {}
    found: dict[str, ast.expr] = {}
    for key, value in zip(node.args[0].keys, node.args[0].values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            found[key.value] = value
    return found | {word.arg: word.value for word in node.keywords if word.arg is not None}


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the literals that an expression may come to: `64`, `64 if wide else 32`, `min(64,
    n)`."""
    if isinstance(node, ast.IfExp):
        yield from _alternatives(node.body)
        yield from _alternatives(node.orelse)
    elif isinstance(node, ast.Call) and last_name(node) == "min":
        for argument in node.args:
            yield from _alternatives(argument)
    elif isinstance(node, ast.Constant):
        yield node


def _sizes(where: ast.AST, smallest: int) -> Iterator[ast.Constant]:
    """Integers that something is divided or multiplied by; what is divided is no block's size."""
    for node in ast.walk(where):
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
            operands = [node.right]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            operands = [node.left, node.right]
        elif isinstance(node, ast.Call) and last_name(node) == "cdiv":
            operands = node.args[1:]
        elif isinstance(node, ast.Call) and last_name(node) == "range":
            operands = node.args[2:]
        for operand in operands:
            if isinstance(operand, ast.Constant) and (integer(operand) or 0) >= smallest:
                yield operand
