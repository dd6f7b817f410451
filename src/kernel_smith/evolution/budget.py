"""Is it time to stop, and why?"""

from __future__ import annotations

from kernel_smith.evolution.state import RunState

_NEAR_THE_LIMIT = 0.95


def reason_to_stop(state: RunState, seconds: float) -> str | None:
    """In words; None to go on. `seconds` are those that the run has taken so far, in all."""
    budget, best = state.config.budget, state.best
    evaluated = state.funnel["evaluated"]
    tokens = state.usage.prompt_tokens + state.usage.completion_tokens
    reasons = (
        (budget.evaluations, evaluated, "evaluations"),
        (budget.seconds, seconds, "seconds"),
        (budget.device_seconds, state.device_seconds, "seconds of evaluation"),
        (budget.tokens, tokens, "tokens"),
        (budget.dollars, state.usage.dollars, "dollars"),
    )
    for limit, used, unit in reasons:
        if limit is not None and used >= limit:
            return f"the budget of {limit:g} {unit} is spent"
    if budget.target is not None and best is not None and best.score >= budget.target:
        return f"the target of {budget.target:g}x is reached"
    if budget.plateau is not None and best is not None and state.since_best >= budget.plateau:
        return f"{budget.plateau} evaluations without a new best"
    if best is not None and best.evaluation.rooflines:
        nearest = min(roofline.share for roofline in best.evaluation.rooflines)
        if nearest >= _NEAR_THE_LIMIT:
            return f"the best kernel is at {nearest:.0%} of the device's limit"
    return None
