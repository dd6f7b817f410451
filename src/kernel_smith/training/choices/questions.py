"""Rows of a table as questions to a language model whose whole answer is one letter.

One forward pass gives the odds of all labels, and every label has its reward here: SFT and RL need
neither decoding nor samples. Labels are shuffled by the seed, so that a place says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from kernel_smith.errors import BadInput, reason_of
from kernel_smith.proposers.chooser.letters import question_text
from kernel_smith.proposers.chooser.options import menu_at
from kernel_smith.proposers.mutator.edit import Machine
from kernel_smith.records import Record
from kernel_smith.training.choices.table import State


class Question(Record):
    """A prompt that ends where the letter is to come, and what each judged letter is worth."""

    task: str
    family: str
    machine: str
    program: str = Field(description="the parent's content hash")
    prompt: str
    rewards: dict[str, float] = Field(description="by label, of those judged")
    children: dict[str, str] = Field(description="by label, the hash of what comes of it")

    @property
    def gains(self) -> bool:
        """Does any letter certainly gain?"""
        return any(reward > 0 for reward in self.rewards.values())


def question_of(state: State, seed: int = 0) -> Question:
    """Return a state as a question, with its options in an order of the seed's."""
    parent, known = state.parent, state.known
    menu = menu_at(state.candidate, Machine(cores=parent.cores), seed=seed)
    children = {
        option.label: option.program.content_hash
        for option in menu.options
        if option.program.content_hash in known
    }
    return Question(
        task=parent.task,
        family=parent.family,
        machine=parent.machine,
        program=parent.program,
        prompt=question_text(menu, parent.speedup),
        rewards={label: known[child].reward for label, child in children.items()},
        children=children,
    )


def questions_of(
    states: Iterable[State], orders: int, progress: Callable[[int], None] = lambda done: None
) -> Iterator[Question]:
    """Yield each state as often as there are orders of its options. Where fewer than two options
    were judged there is nothing to choose."""
    for number, state in enumerate(states, 1):
        progress(number)
        if len(state.known) > 1:
            asked = (question_of(state, seed) for seed in range(orders))
            yield from (each for each in asked if len(each.rewards) > 1)


def write_questions(questions: Iterable[Question], path: Path) -> int:
    """Write a line for each, all of them or none, and return how many there are."""
    partial = path.with_name(f".{path.name}")
    count = 0
    with partial.open("w", encoding="utf-8") as file:
        for question in questions:
            print(question.model_dump_json(), file=file)
            count += 1
    os.replace(partial, path)
    return count


def read_questions(path: Path) -> list[Question]:
    """Read what `write_questions` wrote. Raises `BadInput` with the line that is no question."""
    found: list[Question] = []
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                found.append(Question.model_validate_json(line))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read ({reason_of(error)})", hint=_HINT) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise BadInput(f"{path}:{len(found) + 1}: no question ({what})", hint=_HINT) from None
    if not found:
        raise BadInput(f"{path} has no questions", hint=_HINT)
    return found


_HINT = "write it with `kernel-smith data choices TABLE.jsonl -o questions.jsonl`"
