"""Is it time to stop, and why?"""

from __future__ import annotations

from kernel_smith.records import Budget
from kernel_smith.runs.state import RunState

_NEAR_THE_LIMIT = 0.95
_RESERVE_SECONDS = 60.0
_RESERVE_SHARE = 0.2


def seconds_to_search(budget: Budget) -> float | None:
    """Of the seconds that a run may take the last minute, or the last fifth of fewer than five, is
    for confirming what it found."""
    if budget.seconds is None:
        return None
    return budget.seconds - min(_RESERVE_SECONDS, _RESERVE_SHARE * budget.seconds)


def reason_to_stop(state: RunState, seconds: float, *, more_first: bool = False) -> str | None:
    """In words; None to go on. `seconds` are those that the run has taken so far, in all.

    `more_first`: a first program is still to come, and where it leads nobody knows.
    """
    budget, best = state.config.budget, state.best
    evaluated = state.funnel["evaluated"]
    tokens = state.usage.prompt_tokens + state.usage.completion_tokens
    reasons = (
        (budget.evaluations, evaluated, "evaluations"),
        (budget.rounds, state.rounds, "rounds"),
        (budget.device_seconds, state.device_seconds, "seconds of evaluation"),
        (budget.tokens, tokens, "tokens"),
        (budget.dollars, state.usage.dollars, "dollars"),
    )
    for limit, used, unit in reasons:
        if limit is not None and used >= limit:
            return f"the budget of {limit:g} {unit} is spent"
    most = seconds_to_search(budget)
    if most is not None and seconds >= most:
        return f"the budget of {budget.seconds:g} seconds is spent"
    if best is None or state.is_challenging(best):
        return None
    if budget.plateau is not None and not more_first and state.since_best >= budget.plateau:
        return f"{budget.plateau} evaluations without a new best"
    if budget.target is not None and best.score >= budget.target:
        return _reached(budget)
    if best.evaluation.rooflines:
        nearest = min(roofline.share for roofline in best.evaluation.rooflines)
        if nearest >= _NEAR_THE_LIMIT:
            return f"the best kernel is at {nearest:.0%} of the device's limit"
    return None


def without_luck(why: str, state: RunState, best: str | None) -> str:
    """Why a run ended, with what is known of its best now: a target may have been missed."""
    budget = state.config.budget
    missed = budget.target is not None and state.ranking.score(best) < budget.target
    if missed and why == _reached(budget):
        return f"the target of {budget.target:g}x seemed to be reached, which is not confirmed"
    return why


def _reached(budget: Budget) -> str:
    return f"the target of {budget.target:g}x is reached"
