"""From the text that a model wrote to a program that can be judged, or to why there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import ValidationError

from kernel_smith.errors import BadInput
from kernel_smith.programs.normalise import fingerprint
from kernel_smith.proposers.model.parse import Program, parse_answer
from kernel_smith.records import Candidate, Task

_GIVEN_BACK = "the one that you were given"


@dataclass(frozen=True)
class Question:
    """One row of an RL data set."""

    id: str
    task: Task
    backend: str
    parent: Candidate | None


@dataclass(frozen=True)
class Answer:
    """What one completion holds: `program` only where it is a new one."""

    question: Question
    text: str
    kind: Literal["program", "unparsed", "no-op"]
    program: Candidate | None = None
    message: str = ""


def question_of(row: Mapping[str, Any]) -> Question:
    """Raises `BadInput` where the row is not as the format `trl-rl` says."""
    name = str(row.get("id"))
    try:
        task = _task(row["task"])
        parent = row["parent"]
        backend = str(row["backend"])
        made = None if parent is None else Candidate(backend=backend, source=parent)
    except (KeyError, ValidationError, json.JSONDecodeError, TypeError) as error:
        first = str(error).splitlines()[0]
        raise BadInput(
            f"row {name} is no RL row: {first}",
            hint="write the data with `kernel-smith data build --format trl-rl`",
        ) from None
    return Question(id=name, task=task, backend=backend, parent=made)


def read_answer(question: Question, text: str) -> Answer:
    """A change that leaves the program the same, comments apart, is no change."""
    base = question.parent.source if question.parent is not None else ""
    parsed = parse_answer(text, base)
    if not isinstance(parsed, Program):
        kind: Literal["no-op", "unparsed"] = "no-op" if _GIVEN_BACK in parsed.reason else "unparsed"
        return Answer(question, text, kind, message=parsed.reason)
    candidate = Candidate(backend=question.backend, source=parsed.source)
    if question.parent is not None and fingerprint(candidate) == fingerprint(question.parent):
        return Answer(question, text, "no-op", message="nothing but the wording was changed")
    return Answer(question, text, "program", candidate)


def text_of(completion: str | list[dict[str, str]]) -> str:
    """The text of a completion, which trainers give as a string or as messages."""
    if isinstance(completion, str):
        return completion
    return "".join(message["content"] or "" for message in completion)


@lru_cache(maxsize=256)  # thousands of rows share few tasks
def _task(text: str) -> Task:
    return Task.model_validate_json(text)
