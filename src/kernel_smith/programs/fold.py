"""A program as somebody needs to see it who changes what it does for one workload.

Programs that the framework's compiler wrote, and those that descend from them, have a function for
each workload. What only the other workloads need is folded: a line stands for it, and its text is
put back into whatever becomes of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kernel_smith.programs.merge import workload_function
from kernel_smith.programs.merge_text import exported_functions
from kernel_smith.programs.parts import IMPORTS, MODEL, Module, Part, read_module

_LEAST = 5  # lines: fewer are not worth a line that stands for them
_PLACE = re.compile(r"^[^\S\n]*(?:#|//) \[folded (\d+): [^\n]*\]$", re.MULTILINE)


@dataclass(frozen=True)
class Folded:
    """A program with lines that stand for some of its text."""

    text: str
    hidden: Mapping[int, str] = field(default_factory=dict)
    """What is folded, by the numbers in the lines that stand for it."""

    @property
    def lines(self) -> int:
        """How many lines are not shown."""
        return sum(text.count("\n") for text in self.hidden.values())

    def unfold(self, changed: str) -> str:
        """Put what is folded back into a text that was made from this one. A line that stands for
        something and was left out takes that with it."""
        left = dict(self.hidden)

        def back(line: re.Match[str]) -> str:
            return left.pop(int(line[1]), "").rstrip("\n")

        return _PLACE.sub(back, changed) if self.hidden else changed


def fold(source: str, workload: str, others: Collection[str]) -> Folded:
    """Fold what only `others` of a program's workloads need. The program as it is where it has no
    function for each of them, or is no Python."""
    module, own = read_module(source), workload_function(workload)
    functions = {workload_function(other) for other in others} - {own}
    if module is None or not functions or not {own, *functions} <= module.parts_by_name.keys():
        return Folded(source)
    return _Folder(module, own, functions).folded()


class _Folder:
    def __init__(self, module: Module, own: str, others: set[str]) -> None:
        self._module = module
        shown = module.needed_by([MODEL, own], without=others)
        needed = module.needed_by(others)
        self._shown = {id(part) for part in shown}
        self._folded = {id(part) for part in needed} - self._shown
        self._called = {name for part in shown for name in part.attributes}
        self._called_unseen = {
            name for part in needed if id(part) in self._folded for name in part.attributes
        } - self._called
        self._hidden: dict[int, str] = {}

    def folded(self) -> Folded:
        text = "".join(self._parts()) + self._module.tail
        return Folded(text, self._hidden)

    def _parts(self) -> list[str]:
        """Return the text of each part; of neighbours that are folded one line stands for all."""
        texts: list[str] = []
        run: list[Part] = []
        for part in [*self._module.parts, None]:
            if part is not None and self._is_folded(part):
                run.append(part)
                continue
            if run:
                texts.append(self._line_for_parts(run))
                run = []
            if part is not None:
                texts.append(self._kernel_text(part))
        return texts

    def _is_folded(self, part: Part) -> bool:
        return id(part) in self._folded and not isinstance(part.node, IMPORTS)

    def _line_for_parts(self, parts: list[Part]) -> str:
        text = "".join(part.text for part in parts)
        names = ", ".join(name for part in parts for name in part.names)
        blank = text[: len(text) - len(text.lstrip("\n"))]
        return blank + self._fold(text[len(blank) :], names, "#")

    def _kernel_text(self, part: Part) -> str:
        """Return a kernel's text without the functions that only folded ones call."""
        text = part.constant
        if text is None or part.text.count(text) != 1:
            return part.text
        found = exported_functions(text)
        unseen = {} if found is None else found[1]
        for name, block in unseen.items():
            if name in self._called_unseen and not _is_used(name, unseen):
                text = text.replace(block, self._fold(block, name, "//"))
        return part.text.replace(part.constant or "", text)

    def _fold(self, text: str, names: str, comment: str) -> str:
        lines = text.rstrip("\n").count("\n") + 1
        if lines < _LEAST:
            return text
        number = len(self._hidden) + 1
        self._hidden[number] = text
        after = text[len(text.rstrip("\n")) :]
        return f"{comment} [folded {number}: {names}, {lines} lines]{after}"


def _is_used(name: str, functions: Mapping[str, str]) -> bool:
    """Does another function of the text call it?"""
    word = re.compile(rf"\b{name}\b")
    return any(word.search(text) for other, text in functions.items() if other != name)
