"""Is it time to stop, and why?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kernel_smith.records import Budget, Roofline
from kernel_smith.runs.state import RunState

GIVEN = "start"
"""Who makes the programs that a run was given."""

_NEAR_THE_LIMIT = 0.95
# Beyond it the limit is not one: the program does without some of what the reference computes.
_BEYOND_THE_LIMIT = 1.1
_NEAR_A_LAUNCH = 0.5
_RESERVE_SECONDS = 60.0
_RESERVE_SHARE = 0.2


def seconds_to_search(limit: float) -> float:
    """Of the seconds that a run may take, in all or evaluating, the last minute, or the last fifth
    of fewer than five, is for confirming what it found."""
    return limit - min(_RESERVE_SECONDS, _RESERVE_SHARE * limit)


def has_time_left(state: RunState, seconds: float) -> bool:
    """May more be measured after `seconds` in all, now that the search is over?"""
    budget = state.config.budget
    spent = ((budget.seconds, seconds), (budget.device_seconds, state.device_seconds))
    return all(limit is None or used < limit for limit, used in spent)


def reason_to_stop(
    state: RunState, seconds: float, first_to_come: Collection[str] = ()
) -> str | None:
    """In words; None to go on. `seconds` are those that the run has taken so far, in all.

    `first_to_come`: who makes the first programs that are still to come. Where these lead nobody
    knows.
    """
    budget, best = state.config.budget, state.best
    evaluated = state.funnel["evaluated"]
    tokens = state.usage.prompt_tokens + state.usage.completion_tokens
    reasons = (
        (budget.evaluations, evaluated, "evaluations"),
        (budget.rounds, state.rounds, "rounds"),
        (budget.tokens, tokens, "tokens"),
        (budget.dollars, state.usage.dollars, "dollars"),
    )
    for limit, used, unit in reasons:
        if limit is not None and used >= limit:
            return f"the budget of {limit:g} {unit} is spent"
    times = (
        (budget.seconds, seconds, "seconds"),
        (budget.device_seconds, state.device_seconds, "seconds of evaluation"),
    )
    for limit, spent, unit in times:
        if limit is not None and spent >= seconds_to_search(limit):
            return f"the budget of {limit:g} {unit} is spent"
    if best is None or state.is_challenging(best):
        return None
    if budget.plateau is not None and not first_to_come and state.since_best >= budget.plateau:
        return f"{budget.plateau} evaluations without a new best"
    if budget.target is not None and best.score >= budget.target:
        return _reached(budget)
    # Whoever gives programs wants to know of each what it is worth.
    return None if GIVEN in first_to_come else _at_the_limit(best.evaluation.rooflines)


def _at_the_limit(rooflines: Sequence[Roofline]) -> str | None:
    """Where nothing is left to gain on any workload.

    One that is bound by its launch is at its limit if there is but one launch, and it takes hardly
    longer than an empty kernel: the least that a kernel can do takes as long again.
    """
    launching = [roofline for roofline in rooflines if roofline.bound == "launch"]
    working = [roofline for roofline in rooflines if roofline.bound != "launch"]
    if any(each.launches > 1 or each.share < _NEAR_A_LAUNCH for each in launching):
        return None
    shares = [each.share for each in working] or [1.0]
    nearest = min(shares)
    if not rooflines or nearest < _NEAR_THE_LIMIT or max(shares) > _BEYOND_THE_LIMIT:
        return None
    if not working:
        return "the best kernel takes as long as launching one"
    return f"the best kernel is at {nearest:.0%} of the device's limit"


def without_luck(why: str, state: RunState, best: str | None) -> str:
    """Why a run ended, with what is known of its best now: a target may have been missed."""
    budget = state.config.budget
    missed = budget.target is not None and state.ranking.score(best) < budget.target
    if missed and why == _reached(budget):
        return f"the target of {budget.target:g}x seemed to be reached, which is not confirmed"
    return why


def _reached(budget: Budget) -> str:
    return f"the target of {budget.target:g}x is reached"
