"""The judge as an environment: answers go in as soon as they are written, rewards come out.

All answers of a batch are with the engine together. An engine that goes away is waited for, up to
a limit; then the training ends in a way that can be resumed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Evaluation, Options, Stage
from kernel_smith.training.answers import Answer, question_of, read_answer
from kernel_smith.training.config import RewardSettings
from kernel_smith.training.journal import Journal
from kernel_smith.training.rewards import Graded, grade

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class EngineGone(MissingPrerequisite):
    """Nobody evaluates any more, and the patience is at its end."""


@dataclass(eq=False)
class _Asked:
    answer: Answer
    future: Future[Evaluation] | None = None
    evaluation: Evaluation | None = None
    trouble: Exception | None = None


class Environment:
    """`begin` submits answers, possibly more than once; `finish` waits for the rewards of all."""

    def __init__(
        self,
        engine: Evaluator,
        settings: RewardSettings,
        journal: Journal,
        *,
        options: Options | None = None,
        patience: float = 600.0,
        seed: int = 0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._journal = journal
        self._options = options
        self._patience = patience
        self._seed = seed
        self._sleep = sleep
        self._asked: list[_Asked] = []

    def begin(self, rows: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> None:
        """Answers of the same question lie side by side, so its task and parent are kept ready."""
        for row, text in zip(rows, texts, strict=True):
            asked = _Asked(read_answer(question_of(row), text))
            self._asked.append(asked)
            self._submit(asked)

    def finish(self, step: int) -> tuple[list[float | None], dict[str, float]]:
        """The rewards in the order of `begin`, and what share of the answers ended how."""
        batch, self._asked = self._asked, []
        self._collect(batch)
        graded = [self._grade(asked) for asked in batch]
        for asked, grading in zip(batch, graded, strict=True):
            self._journal.rollout(step, asked.answer, asked.evaluation, grading)
        return [grading.reward for grading in graded], _shares(batch, graded)

    def _submit(self, asked: _Asked) -> None:
        answer = asked.answer
        if answer.program is None:
            return
        question = answer.question
        asked.trouble = None
        try:
            asked.future = self._engine.submit(
                question.task, answer.program, self._options, beside=question.parent
            )
        except (MissingPrerequisite, InternalError, BadInput) as error:
            asked.trouble = error

    def _collect(self, batch: list[_Asked]) -> None:
        """Waits for all; what an engine could not answer is asked again until patience ends."""
        waited, pause = 0.0, _FIRST_PAUSE
        while True:
            for asked in batch:
                _settle(asked)
            lost = _lost(batch)
            if not lost:
                return
            if waited >= self._patience:
                raise _gone(lost)
            self._sleep(pause)
            waited += pause
            pause = min(2 * pause, _LONGEST_PAUSE)
            for asked in lost:
                self._submit(asked)

    def _grade(self, asked: _Asked) -> Graded:
        if asked.trouble is not None:  # this one cannot be evaluated; others can
            return Graded(None, message=str(asked.trouble))
        return grade(asked.answer, asked.evaluation, self._settings, seed=self._seed)


def _settle(asked: _Asked) -> None:
    future, asked.future = asked.future, None
    if future is None:
        return
    try:
        asked.evaluation = future.result()
    except (MissingPrerequisite, InternalError, BadInput, CancelledError) as error:
        asked.trouble = error


def _lost(batch: list[_Asked]) -> list[_Asked]:
    """Those whose engine is gone. A judge that fails on one program is not gone; one that fails
    on every program might as well be."""
    troubled = [asked for asked in batch if asked.trouble is not None]
    gone = [
        asked
        for asked in troubled
        if isinstance(asked.trouble, MissingPrerequisite | CancelledError)
    ]
    submitted = [asked for asked in batch if asked.answer.program is not None]
    failed = [asked for asked in troubled if isinstance(asked.trouble, InternalError)]
    return troubled if failed and len(failed) == len(submitted) > 1 else gone


def _gone(lost: list[_Asked]) -> EngineGone:
    trouble = lost[0].trouble
    hint = trouble.hint if isinstance(trouble, MissingPrerequisite) else "see its log"
    return EngineGone(f"the engine does not evaluate any more: {trouble}", hint=hint)


def _shares(batch: list[_Asked], graded: list[Graded]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for asked, grading in zip(batch, graded, strict=True):
        stage = asked.evaluation.stage if asked.evaluation else None
        counts["parsed"] += asked.answer.program is not None
        counts["no_op"] += asked.answer.kind == "no-op"
        counts["correct"] += stage is Stage.OK
        counts["faster"] += grading.gain is not None and grading.gain.low > 1
        counts["cheating"] += stage is Stage.CHEATING
        counts["unknown"] += grading.reward is None
    return {name: count / len(batch) for name, count in counts.items()}
