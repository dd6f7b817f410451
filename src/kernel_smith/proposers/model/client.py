"""Asking one model many things at once: pace, caps, retries, and one deadline over all of it."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel_smith.proposers.model.background import Background
from kernel_smith.proposers.model.config import Model
from kernel_smith.proposers.model.failures import ModelError, RateLimited, Stalled
from kernel_smith.proposers.model.ledger import Ledger, estimate_tokens, most_tokens
from kernel_smith.proposers.model.pace import Pace
from kernel_smith.proposers.model.received import Received
from kernel_smith.proposers.model.transport import OverHttp, Transport
from kernel_smith.records import Message, Usage

_LONGEST_BACKOFF_SECONDS = 60.0


@dataclass
class Bill:
    """What asking took, failed attempts included. `estimated`: the server did not count it all."""

    usage: Usage = field(default_factory=Usage)
    estimated: bool = False


@dataclass(frozen=True)
class Answer:
    text: str
    thoughts: str
    truncated: bool
    first_token: Mapping[str, float] = field(default_factory=dict)
    """What it could have begun with, and the log-probability of each, where the server tells."""
    finish: str | None = field(default=None, compare=False)
    """Why it ended, in the server's word: `stop`, `tool_calls`, `content_filter`, ..."""

    @property
    def full(self) -> str:
        """The answer as it is kept: thoughts first, marked the way that models mark them."""
        return f"<think>\n{self.thoughts}\n</think>\n\n{self.text}" if self.thoughts else self.text


class Client:
    """One model. `background` and `ledger` may be shared by several models."""

    def __init__(
        self,
        model: Model,
        background: Background,
        ledger: Ledger,
        transport: Transport | None = None,
    ) -> None:
        self.model = model
        self.background = background
        self._ledger = ledger
        self._pace = Pace(model.requests_per_minute, model.tokens_per_minute)
        self._jitter = random.Random()
        self._transport = transport or OverHttp(model)
        self._used = False

    async def ask(self, messages: tuple[Message, ...], bill: Bill) -> Answer:
        """Return the model's answer; what it cost is added to `bill`. Raises `ModelError`.

        Runs on the background's loop, as all coroutines here do.
        """
        last: ModelError | None = None
        end = asyncio.get_running_loop().time() + self.model.deadline_seconds
        try:
            async with asyncio.timeout_at(end):
                for attempt in itertools.count():
                    try:
                        return await self._attempt(messages, bill)
                    except ModelError as error:
                        last = error
                        await self._wait_before_retry(error, attempt, end)
        except TimeoutError:
            pass
        before = f" (before that: {last})" if last is not None else ""
        raise Stalled(
            f"{self.model.name}: no answer within {self.model.deadline_seconds:g} s{before}",
            hint="raise deadline_seconds, or lower max_tokens",
        )

    async def _wait_before_retry(self, error: ModelError, attempt: int, end: float) -> None:
        """Raises the error where a retry is of no use, or not possible in time."""
        if not error.transient or attempt >= self.model.retries:
            raise error
        delay = min(self.model.backoff_seconds * 2**attempt, _LONGEST_BACKOFF_SECONDS)
        delay *= self._jitter.uniform(0.5, 1.0)
        if isinstance(error, RateLimited) and error.wait is not None:
            # Jitter beyond it, so that those who waited do not come back all at once.
            delay += error.wait
        if asyncio.get_running_loop().time() + delay >= end:
            raise error
        if isinstance(error, RateLimited):
            self._pace.pause(delay)
        await asyncio.sleep(delay)

    async def _attempt(self, messages: tuple[Message, ...], bill: Bill) -> Answer:
        if not self._used:
            self._used = True
            self.background.finally_run(self._transport.close)
        most = most_tokens(messages)
        slot = await self._pace.enter(most + self.model.max_tokens)
        reserved = self._ledger.reserve(self.model, most)
        received = self._transport.receiving()
        started = time.monotonic()
        try:
            await self._transport.send(messages, received)
        finally:
            usage, estimated = count(self.model, messages, received, time.monotonic() - started)
            slot.tokens = usage.prompt_tokens + usage.completion_tokens
            self._ledger.settle(reserved, usage)
            bill.usage += usage
            bill.estimated = bill.estimated or estimated
        cut = received.finish == "length"
        text, thoughts = received.text, received.thoughts
        return Answer(text, thoughts, cut, received.first_token, received.finish)


def count(
    model: Model, messages: tuple[Message, ...], received: Received, seconds: float
) -> tuple[Usage, bool]:
    """Return what an attempt took, and whether that is an estimate.

    An answer that broke off is charged as far as it came: the server has computed it.
    """
    if not received.charged:
        return Usage(seconds=seconds, requests=1), False
    said = received.text + received.thoughts
    counted = _believable(received.usage, messages, said, model)
    prompt, cached, completion = counted or (
        sum(estimate_tokens(message.content) for message in messages),
        0,
        estimate_tokens(said),
    )
    usage = Usage(
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
        dollars=model.dollars(prompt, cached, completion),
        seconds=seconds,
        requests=1,
    )
    return usage, counted is None


def _believable(
    usage: dict[str, Any] | None, messages: tuple[Message, ...], said: str, model: Model
) -> tuple[int, int, int] | None:
    """Return the server's own count, unless it cannot be."""
    if usage is None:
        return None
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    details = usage.get("prompt_tokens_details")
    cached = (details.get("cached_tokens") if isinstance(details, dict) else None) or 0
    if any(type(number) is not int for number in (prompt, completion, cached)):
        return None
    assert isinstance(prompt, int) and isinstance(completion, int)
    # A token holds at least one byte; thoughts that are not sent may exceed what was allowed.
    most_prompt = 2 * most_tokens(messages) + 1000
    most_completion = 4 * model.max_tokens + 1000
    fits = 0 < prompt <= most_prompt and bool(said) <= completion <= most_completion
    return (prompt, cached, completion) if fits and 0 <= cached <= prompt else None
