"""The edit that makes one launch of two whose programs have nothing to do with each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, count

from kernel_smith.proposers.mutator.edit import Site, Splice, splice
from kernel_smith.proposers.mutator.triton.launching import (
    OPTIONS,
    Launch,
    launches_of,
    share_nothing,
    written_by,
)
from kernel_smith.proposers.mutator.triton.text import (
    TritonText,
    calls,
    grid,
    program_ids,
    triton_edit,
)

_MOST_AXES = 2


@dataclass(frozen=True, eq=False)
class _Member:
    """A launch of a kernel that can be told which of its programs it is to be."""

    kernel: ast.FunctionDef
    launch: Launch
    launches: list[Launch]
    sizes: list[ast.expr]
    written: set[str]


@triton_edit(
    "one-launch",
    "Launch two kernels that need nothing of each other as one, so that they run side by side.",
    together=True,
    told=("one launch",),
)
def one_launch(text: TritonText) -> Iterator[Site]:
    members = [member for kernel in text.kernels for member in _members(text, kernel)]
    members.sort(key=lambda member: text.start(member.launch.statement))
    for number, (first, second) in enumerate(combinations(members, 2)):
        if _can_be_one(first, second):
            place = f"{first.kernel.name} and {second.kernel.name}"
            if place.count(first.kernel.name) > 1:
                place = f"both of {first.kernel.name}"
            merged = _Merged(text, first, second, f"{text.unused('side_by_side')}_{number}")
            yield Site(f"{place} in {first.launch.function.name}", tuple(merged.changes()))


def _members(text: TritonText, kernel: ast.FunctionDef) -> Iterator[_Member]:
    launches, written = launches_of(text, kernel), written_by(text, kernel)
    axes = program_ids(kernel)
    if launches is None or written is None or axes is None or _looks_at_the_grid(text, kernel):
        return
    taken = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
    taken |= {argument.arg for argument in kernel.args.args}
    for launch in launches:
        sizes = grid(launch.call)
        if sizes is None or len(sizes) > _MOST_AXES or not launch.has_plain_options():
            continue
        if set(axes) <= set(range(len(sizes))) and not {"program", "across"} & taken:
            yield _Member(kernel, launch, launches, sizes, written)


def _looks_at_the_grid(text: TritonText, kernel: ast.FunctionDef) -> bool:
    """Would it, or what it calls, take the merged launch's grid for its own?"""
    called = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
    helpers = [each for each in text.kernels if each.name in called and each is not kernel]
    return bool(calls(kernel, "num_programs")) or any(
        calls(helper, name) for helper in helpers for name in ("program_id", "num_programs")
    )


def _can_be_one(first: _Member, second: _Member) -> bool:
    function = first.launch.function
    if function is not second.launch.function or first.launch is second.launch:
        return False
    begin = function.body.index(first.launch.statement)
    end = function.body.index(second.launch.statement)
    between = function.body[begin + 1 : end]
    if begin >= end or not all(map(_only_names_memory, between)):
        return False
    used = {node.id for node in ast.walk(first.launch.call) if isinstance(node, ast.Name)}
    forgotten = {name for statement in between for name in _forgotten(statement)}
    named = {name for statement in between for name in _named(statement)}
    return not named & (used | forgotten) and _are_independent(first, second)


def _only_names_memory(statement: ast.stmt) -> bool:
    """Does a statement allocate, take a view or forget a name, and nothing else?"""
    match statement:
        case ast.Delete(targets=targets):
            return all(isinstance(target, ast.Name) for target in targets)
        case ast.Assign(targets=[ast.Name()], value=ast.Name()):
            return True
        case ast.Assign(
            targets=[ast.Name()],
            value=ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name)),
        ):
            return name in ("empty", "empty_like", "empty_strided", "as_strided")
    return False


def _forgotten(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Delete) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _named(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _are_independent(first: _Member, second: _Member) -> bool:
    """Does neither store to what the other is given?"""
    for ours, theirs in ((first, second), (second, first)):
        for written in ours.written:
            target = ours.launch.given[written]
            others = theirs.launch.given.values()
            if not all(share_nothing(ours.launch.function, target, other) for other in others):
                return False
    return True


def _told_which_program(text: TritonText, member: _Member) -> Iterator[Splice]:
    """Yield a kernel that is given its place instead of asking for it."""
    flat = len(member.sizes) == 1
    for axis, asked in (program_ids(member.kernel) or {}).items():
        place = "program" if flat else ("(program % across)", "(program // across)")[axis]
        for call in asked:
            yield text.replaced(call, place)
    yield text.parameter(member.kernel, "program" if flat else "program, across")


class _Merged:
    """The kernel that does the work of both, and its launch."""

    def __init__(self, text: TritonText, first: _Member, second: _Member, name: str) -> None:
        self._text = text
        self._members = (first, second)
        self._name = name
        ours = [argument.arg for argument in first.kernel.args.args]
        theirs = [argument.arg for argument in second.kernel.args.args]
        taken = {*ours, *theirs}
        self._names = (
            {name: name for name in ours},
            {name: _unlike(name, taken) if name in ours else name for name in theirs},
        )

    def changes(self) -> Iterator[Splice]:
        text, (first, second) = self._text, self._members
        kernels = {id(member.kernel): member for member in self._members}.values()
        end = max(text.end(member.kernel) for member in kernels)
        added = [self._copied(member) for member in kernels if self._is_launched_elsewhere(member)]
        yield Splice(end, end, "".join(f"\n\n\n{each}" for each in (*added, self.kernel())))
        for member in kernels:
            if not self._is_launched_elsewhere(member):
                yield from _told_which_program(text, member)
        body = first.launch.function.body
        between = body[body.index(first.launch.statement) : body.index(second.launch.statement)]
        forgetting = [statement for statement in between if isinstance(statement, ast.Delete)]
        for statement in (first.launch.statement, *forgetting):
            yield text.without(statement)
        indent = "\n" + " " * second.launch.statement.col_offset
        lines = [self.launch(), *(text.of(each) for each in forgetting)]
        yield text.replaced(second.launch.statement, indent.join(lines))

    def _is_launched_elsewhere(self, member: _Member) -> bool:
        return any(
            launch.call not in [each.launch.call for each in self._members]
            for launch in member.launches
        )

    def _called(self, member: _Member) -> str:
        if not self._is_launched_elsewhere(member):
            return member.kernel.name
        kernels = [each.kernel for each in self._members]
        return f"{self._name}_part_{kernels.index(member.kernel)}"

    def _copied(self, member: _Member) -> str:
        """Return a kernel under another name, that is told which program it is to be."""
        begin = self._text.start(member.kernel)
        pieces = [
            Splice(piece.start - begin, piece.end - begin, piece.text)
            for piece in _told_which_program(self._text, member)
        ]
        copied = splice(self._text.of(member.kernel), pieces)
        return "@triton.jit\n" + copied.replace(member.kernel.name, self._called(member), 1)

    def kernel(self) -> str:
        return "\n".join(
            [
                "@triton.jit",
                f"def {self._name}({', '.join(self._parameters())}):",
                "    if tl.program_id(0) < first_programs:",
                f"        {self._call(0, 'tl.program_id(0)')}",
                "    else:",
                f"        {self._call(1, 'tl.program_id(0) - first_programs')}",
            ]
        )

    def _parameters(self) -> Iterator[str]:
        for member, names in zip(self._members, self._names, strict=True):
            for argument in member.kernel.args.args:
                kind = argument.annotation
                name = names[argument.arg]
                yield f"{name}: {self._text.of(kind)}" if kind is not None else name
        yield "first_programs"
        yield from self._widths()

    def _widths(self) -> dict[str, str]:
        """Programs side by side in a grid of two axes, by parameter."""
        names = zip(("first_across", "second_across"), self._members, strict=True)
        return {
            name: self._text.of(member.sizes[0])
            for name, member in names
            if len(member.sizes) == _MOST_AXES
        }

    def _call(self, number: int, program: str) -> str:
        member = self._members[number]
        given = [*self._names[number].values(), program]
        if len(member.sizes) == _MOST_AXES:
            given.append(("first_across", "second_across")[number])
        return f"{self._called(member)}({', '.join(given)})"

    def launch(self) -> str:
        first, second = (self._programs(member) for member in self._members)
        given = {"first_programs": first, **self._widths()}
        for member, names in zip(self._members, self._names, strict=True):
            for name, value in member.launch.given.items():
                if name in names:
                    given[names[name]] = self._text.of(value)
        given |= {name: str(most) for name in OPTIONS if (most := self._most(name))}
        words = ", ".join(f"{name}={value}" for name, value in given.items())
        return f"{self._name}[({first} + {second},)]({words})"

    def _programs(self, member: _Member) -> str:
        return " * ".join(self._text.operand(size) for size in member.sizes)

    def _most(self, option: str) -> int:
        return max(member.launch.number(option) or 0 for member in self._members)


def _unlike(name: str, taken: set[str]) -> str:
    new = next(f"{name}_{number}" for number in count(2) if f"{name}_{number}" not in taken)
    taken.add(new)
    return new
