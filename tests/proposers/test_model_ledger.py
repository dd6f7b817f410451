"""Caps on tokens and dollars, and the pace of requests."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernel_smith.proposers.model.config import Model
from kernel_smith.proposers.model.failures import BudgetSpent
from kernel_smith.proposers.model.ledger import Ledger, most_tokens
from kernel_smith.proposers.model.pace import Pace
from kernel_smith.records import Message, Usage

MODEL = Model(
    name="m", base_url="http://h/v1", max_tokens=100, price_prompt=1.0, price_completion=2.0
)


def test_requests_under_way_count_against_the_cap() -> None:
    ledger = Ledger(max_tokens=250)
    first = ledger.reserve(MODEL, 20)
    ledger.reserve(MODEL, 20)
    with pytest.raises(BudgetSpent, match="10 are left, with 2 requests under way") as caught:
        ledger.reserve(MODEL, 20)
    assert caught.value.under_way == 2
    ledger.settle(first, Usage(prompt_tokens=15, completion_tokens=5))
    ledger.reserve(MODEL, 10)


def test_dollars_are_capped_as_well() -> None:
    ledger = Ledger(max_dollars=0.0010)
    ledger.settle(ledger.reserve(MODEL, 100), Usage(dollars=0.0007))
    with pytest.raises(BudgetSpent, match=r"\$0.0005, and \$0.0003 are left"):
        ledger.reserve(MODEL, 300)
    ledger.reserve(MODEL, 10)


def test_what_was_spent_before_counts() -> None:
    ledger = Ledger(max_tokens=250, spent=Usage(prompt_tokens=100, completion_tokens=40))
    with pytest.raises(BudgetSpent):
        ledger.reserve(MODEL, 20)


def test_threads_together_never_pass_the_cap() -> None:
    ledger = Ledger(max_tokens=1000)

    def work(_: int) -> int:
        try:
            reserved = ledger.reserve(MODEL, 10)
        except BudgetSpent:
            return 0
        ledger.settle(reserved, Usage(prompt_tokens=10, completion_tokens=100))
        return 110

    with ThreadPoolExecutor(8) as threads:
        spent = sum(threads.map(work, range(64)))
    assert spent == 990
    assert ledger.spent.prompt_tokens + ledger.spent.completion_tokens == 990


def test_the_most_tokens_of_a_prompt_grow_with_its_bytes() -> None:
    assert most_tokens([Message(role="user", content="中" * 100)]) > 100


def test_requests_beyond_the_limit_wait_for_the_window() -> None:
    async def scenario() -> list[float]:
        pace = Pace(requests=2, tokens=None, window_seconds=0.2)
        slots = await asyncio.gather(*(pace.enter(1) for _ in range(5)))
        return [slot.at for slot in slots]

    at = asyncio.run(scenario())
    assert all(later - earlier >= 0.2 for earlier, later in zip(at, at[2:], strict=False))


def test_tokens_beyond_the_limit_wait_and_corrections_count() -> None:
    async def scenario() -> None:
        pace = Pace(requests=None, tokens=100)
        first = await asyncio.wait_for(pace.enter(500), 10)  # larger than the limit: passes alone
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pace.enter(80), 0.05)
        first.tokens = 10
        await asyncio.wait_for(pace.enter(80), 10)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pace.enter(80), 0.05)

    asyncio.run(scenario())


def test_a_pause_holds_everybody() -> None:
    async def scenario() -> float:
        pace = Pace(requests=None, tokens=None)
        started = asyncio.get_running_loop().time()
        pace.pause(0.1)
        slots = await asyncio.gather(pace.enter(1), pace.enter(1))
        return min(slot.at for slot in slots) - started

    assert asyncio.run(scenario()) >= 0.1
