"""How long a model is asked that gives nothing of use."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from kernel_smith.proposers.model.failures import BudgetSpent, GivenUp, ModelError, Stopped
from kernel_smith.records import Usage


@dataclass
class _Streak:
    """Answers of no use in a row, and what they cost."""

    answers: int = 0
    usage: Usage = field(default_factory=Usage)


class Patience:
    """Counts, for every model, the answers of no use since its last good one."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._streaks: defaultdict[str, _Streak] = defaultdict(_Streak)

    def forgive(self, model: str) -> None:
        """It gave a program."""
        self._streaks.pop(model, None)

    def after(self, model: str, error: ModelError) -> ModelError:
        """Return the error that counts: this one, or that the model's chances are used up."""
        if error.lasting or isinstance(error, BudgetSpent | Stopped):  # the model is not to blame
            return error
        streak = self._streaks[model]
        streak.answers += 1
        if error.conversation is not None:
            streak.usage += error.conversation.usage
        if self._limit is None or streak.answers < self._limit:
            return error
        end = GivenUp(
            f"{model} gave nothing of use {streak.answers} times in a row "
            f"({in_words(streak.usage)}), at last: {error.what}",
            hint=error.hint,
        )
        end.conversation = error.conversation
        return end


def in_words(usage: Usage) -> str:
    """Return what asking took: requests, tokens, and dollars where a price is known."""
    tokens = usage.prompt_tokens + usage.completion_tokens
    plural = "" if usage.requests == 1 else "s"
    dollars = f", ${usage.dollars:.2f}" if usage.dollars else ""
    return f"{usage.requests} request{plural}, {tokens:,} tokens{dollars}"
