"""The chooser as whoever plans: it says which edit it would make, and somebody else makes it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kernel_smith.records import (
    Declined,
    Event,
    Label,
    Noted,
    Question,
    RunConfig,
    StepDropped,
    StepProposed,
)
from kernel_smith.search.base import Ask

CHOOSER = "chooser"
_FOR, _PLAN = "plan-for", "plan"
_QUESTION = Question(text="Which edit should be made next? Name it, and its place.")


@dataclass(frozen=True)
class Planned:
    """An edit at a place, in the chooser's words. `label` is to come back with what came of it."""

    text: str
    label: Label

    @property
    def edit(self) -> str:
        return self.text.partition(":")[0]

    @property
    def place(self) -> str:
        return self.text.partition(":")[2].strip()


class Planner:
    """Asks the chooser for one plan at a time for a program, while somebody could carry it out."""

    def __init__(self, config: RunConfig, coders: Collection[str]) -> None:
        """`coders`: the workers who can do as they are told."""
        self._coders = set(coders) & set(config.proposers)
        self.takes_part = CHOOSER in config.proposers and bool(self._coders)
        self._open: dict[int, tuple[str, str]] = {}
        self._given: set[int] = set()
        self._asked: set[str] = set()
        self._silent: set[str] = set()
        self._made = 0

    def ask(self, parent: str, free: Sequence[str]) -> Ask | None:
        """Return the question to the chooser, where a plan is needed and none is on its way."""
        needed = self.takes_part and CHOOSER in free and self._coders & set(free)
        if not needed or parent in self._asked | self._silent or self._next(parent) is not None:
            return None
        self._asked.add(parent)
        return Ask(worker=CHOOSER, parent=parent, context=(_QUESTION,), label={_FOR: parent})

    def is_thinking(self, parent: str) -> bool:
        """Tell whether a plan is on its way."""
        return parent in self._asked

    def take(self, parent: str) -> Planned | None:
        """Return the next plan for a program, which is then somebody's."""
        number = self._next(parent)
        if number is None:
            return None
        self._given.add(number)
        return Planned(self._open[number][1], {_PLAN: number})

    def hear(self, event: Event) -> None:
        """Learn what was planned, and which plans are done with."""
        match event:
            case Noted() if _FOR in event.label:
                self._made += 1
                parent = str(event.label[_FOR])
                self._open[self._made] = parent, event.note.text
                self._asked.discard(parent)
            case StepDropped() | Declined() if _FOR in event.label:
                parent = str(event.label[_FOR])
                self._asked.discard(parent)
                self._silent.add(parent)
            case StepProposed() | StepDropped() | Declined() if _PLAN in event.label:
                self._open.pop(int(event.label[_PLAN]), None)

    def _next(self, parent: str) -> int | None:
        numbers = (number for number, (about, _) in self._open.items() if about == parent)
        return next((number for number in numbers if number not in self._given), None)
