"""A page of notes on the run, which a model rewrites every few evaluations.

After POLCA's summariser: whoever writes the next program is told what all earlier ones have shown,
in ten lines, and not only what its own parent has.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kernel_smith.records import (
    Declined,
    Event,
    Noted,
    Question,
    RunConfig,
    Section,
    StepDropped,
    StepEvaluated,
    Summary,
)
from kernel_smith.search.attempts import attempts_of, in_words
from kernel_smith.search.base import Ask
from kernel_smith.search.thinking import THINKER

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

_EVERY = 15  # evaluations
_ROLE, _SUMMARISER = "role", "summariser"

_QUESTION = """Look at the latest attempts of this run, and at the notes so far, if there are any:

{attempts}

Rewrite the notes in at most ten lines, for whoever writes the next program: what limits this task,
what paid and by how much, what was tried in vain and why, and what is worth trying next."""


class Scratchpad:
    """Pure, as methods are: what it knows follows from the events of the run."""

    def __init__(self, config: RunConfig) -> None:
        self._on = THINKER in config.proposers
        self._since: deque[int] = deque(maxlen=_EVERY)
        self._fresh = 0
        self._is_asked = False
        self.text = ""

    def ask(self, state: RunState, worker: str) -> Ask | None:
        """Return the request to rewrite the notes, if it is time and this is the one who can."""
        due = self._on and self._fresh >= _EVERY and not self._is_asked
        if worker != THINKER or not due or state.best is None:
            return None
        self._is_asked = True
        steps = [state.steps[number] for number in self._since]
        attempts = "\n".join(map(in_words, attempts_of(steps, state)))
        question = Question(text=_QUESTION.format(attempts=attempts))
        parent = state.best.candidate.content_hash
        context = (*self.sections(), question)
        return Ask(worker=worker, parent=parent, context=context, label={_ROLE: _SUMMARISER})

    def sections(self) -> tuple[Section, ...]:
        return (Summary(text=self.text),) if self.text else ()

    def hear(self, event: Event) -> None:
        match event:
            case StepEvaluated():
                self._since.append(event.step)
                self._fresh += 1
            case Noted() if event.label.get(_ROLE) == _SUMMARISER:
                self.text, self._fresh, self._is_asked = event.note.text, 0, False
            case StepDropped() | Declined() if event.label.get(_ROLE) == _SUMMARISER:
                self._fresh, self._is_asked = 0, False  # later, then
