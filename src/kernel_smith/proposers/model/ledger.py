"""What was spent on models, and what may still be: caps that count requests under way."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from kernel_smith.proposers.model.config import Model
from kernel_smith.proposers.model.failures import BudgetSpent
from kernel_smith.records import Message, Usage

CHARACTERS_PER_TOKEN = 3.5
# Code with much punctuation has shorter tokens than prose; a cap must not be passed even then.
_BYTES_PER_TOKEN_AT_LEAST = 2.0
_TOKENS_PER_MESSAGE = 16


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def most_tokens(messages: Iterable[Message]) -> int:
    """More tokens than a prompt will have, the model's own formatting included."""
    return sum(
        _TOKENS_PER_MESSAGE + math.ceil(len(message.content.encode()) / _BYTES_PER_TOKEN_AT_LEAST)
        for message in messages
    )


@dataclass(frozen=True, eq=False)
class Reservation:
    """The most that a request under way can cost. Settled exactly once."""

    tokens: int
    dollars: float


class Ledger:
    """Shared by all models and threads: reserve before asking, settle after."""

    def __init__(
        self,
        max_tokens: int | None = None,
        max_dollars: float | None = None,
        spent: Usage | None = None,
    ) -> None:
        self._max_tokens = math.inf if max_tokens is None else max_tokens
        self._max_dollars = math.inf if max_dollars is None else max_dollars
        self._spent = spent or Usage()
        self._open: set[Reservation] = set()
        self._lock = threading.Lock()

    @property
    def caps_dollars(self) -> bool:
        """Tell whether prices must be known."""
        return self._max_dollars < math.inf

    @property
    def spent(self) -> Usage:
        with self._lock:
            return self._spent

    def reserve(self, model: Model, prompt_tokens: int) -> Reservation:
        """Set the most that a request can cost aside. Raises `BudgetSpent`."""
        wanted = Reservation(
            prompt_tokens + model.max_tokens,
            model.dollars(prompt_tokens, 0, model.max_tokens),
        )
        with self._lock:
            tokens = self._max_tokens - self._tokens_spent() - sum(r.tokens for r in self._open)
            dollars = self._max_dollars - self._spent.dollars - sum(r.dollars for r in self._open)
            if wanted.tokens > tokens or wanted.dollars > dollars:
                raise self._refusal(wanted, tokens, dollars)
            self._open.add(wanted)
        return wanted

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Replace what was set aside by what it took."""
        with self._lock:
            self._open.remove(reservation)
            self._spent = self._spent + usage

    def _tokens_spent(self) -> int:
        return self._spent.prompt_tokens + self._spent.completion_tokens

    def _refusal(self, wanted: Reservation, tokens: float, dollars: float) -> BudgetSpent:
        if wanted.tokens > tokens:
            need, left = f"{wanted.tokens} tokens", f"{max(0, tokens):.0f}"
        else:
            need, left = f"${wanted.dollars:.4f}", f"${max(0.0, dollars):.4f}"
        under_way = f", with {len(self._open)} requests under way" if self._open else ""
        return BudgetSpent(
            f"asking the model could take {need}, and {left} are left{under_way}",
            hint="raise the budget of tokens or dollars, or lower the model's max_tokens",
            under_way=len(self._open),
        )
