"""Rows of a table as questions to a language model whose whole answer is one letter.

One forward pass gives the odds of all labels, and every label has its reward here: SFT and RL need
neither decoding nor samples. Labels are shuffled by the seed, so that a place says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_smith.proposers.chooser.options import menu_at
from kernel_smith.proposers.chooser.state import state_text
from kernel_smith.proposers.mutator.edit import Machine
from kernel_smith.records import Candidate
from kernel_smith.records.prose import describe_speedup
from kernel_smith.training.choices.table import State

_ASK = "Which of these changes makes the program fastest? Answer with its letter alone."


@dataclass(frozen=True)
class Question:
    """A prompt that ends where the letter is to come. `rewards`: by label, of those judged."""

    prompt: str
    rewards: dict[str, float]


def question_of(state: State, seed: int = 0) -> Question:
    """Return a state as a question, with its options in an order of the seed's."""
    parent = state.parent
    candidate = Candidate(source=parent.source, backend=parent.backend)
    menu = menu_at(candidate, Machine(cores=parent.cores), seed=seed)
    verdict = f"ok: correct, {describe_speedup(parent.speedup, 'eager')}."
    rewards = {
        option.label: state.judged[option.program.content_hash].reward
        for option in menu.options
        if option.program.content_hash in state.judged
    }
    return Question(f"{state_text(menu, verdict)}\n\n{_ASK}\nAnswer:", rewards)
