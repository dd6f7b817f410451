"""Who is measured at full length once the search is over, and whom the run answers with.

The search chose its best by many short measurings, and the luckiest of many looks best. So what a
run says about its winner comes from another one: at full length, in new processes, against eager
PyTorch and torch.compile. Where that contradicts the search, the next best has its turn.

All of it follows from the state, so a run that is interrupted here goes on where it was, and what
was measured is not measured again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Evaluation, shown_faster
from kernel_smith.runs.state import RunState

_ATTEMPTS = 2
_WAIT_SECONDS = 0.2
_MOST_TIMED = 2  # each of them may look faster by luck in 2.5 of 100 runs, together in 5
_MOST_TRIED = 5  # those that turned out to be wrong included


def next_to_confirm(state: RunState, *, in_time: bool) -> str | None:
    """Return the candidate to be measured next; None when the run can answer.

    The first is measured also if the time is over: without that nothing could be said.
    """
    if state.tried and not in_time:
        return None
    chosen = answer(state) if state.confirmations else None
    other = state.ranking.highest(but=state.confirmations)
    if other is not None and _may_try(state) and _is_open(state, chosen, other):
        return other
    holding = [name for name, shown in state.confirmations.items() if shown_faster(shown[-1])]
    # Whoever is chosen by these figures is flattered by them, too: it is measured once more.
    if chosen in holding and len(holding) > 1 and len(state.confirmations[chosen]) == 1:
        return chosen
    return None


def measure_at_length(
    state: RunState, engine: Evaluator, name: str, is_stopping: Callable[[], bool]
) -> Evaluation | None:
    """Return what a candidate shows, or None if somebody stops the run meanwhile.

    What was too noisy is measured a second time, and so is what an engine only remembers.
    """
    chosen = state.evaluated[name]
    for _ in range(_ATTEMPTS):
        future = engine.submit(state.task, chosen.candidate, state.config.confirmation)
        while not future.done() and not is_stopping():
            wait([future], _WAIT_SECONDS)
        if is_stopping():
            return None
        shown = future.result()
        is_new = shown.created_at > chosen.evaluation.created_at
        if is_new and not shown.stage.fleeting:
            return shown
    if not is_new:
        raise InternalError("the engine answers with what it measured before")
    return shown


def answer(state: RunState) -> str | None:
    """Whom the run answers with: one that was shown to be faster, if there is any.

    Otherwise one whose speed is known at full length comes before those that were too noisy or
    not measured so.
    """
    latest = {name: shown[-1] for name, shown in state.confirmations.items()}
    faster = [name for name, shown in latest.items() if shown_faster(shown)]
    timed = [name for name, shown in latest.items() if shown.ok]
    choices = (state.ranking.highest(among=names) for names in (faster, timed, latest))
    return next(filter(None, choices), state.ranking.best)


def _may_try(state: RunState) -> bool:
    tried = set(state.tried)
    timed = [name for name in tried if state.confirmations[name][-1].timing is not None]
    return len(tried) < _MOST_TRIED and len(timed) < _MOST_TIMED


def _is_open(state: RunState, chosen: str | None, other: str) -> bool:
    """Might the other be the better answer?"""
    if chosen is None or chosen not in state.confirmations:
        return True
    shown = state.confirmations[chosen][-1]
    if not shown_faster(shown) or shown.timing is None:
        return True
    # One that has just been measured is given up only where that contradicts what chose it; one
    # that was confirmed earlier has been overtaken by a search since then.
    reached = shown.timing.speedup.high if state.tried else shown.timing.speedup.low
    return state.ranking.score(other) > reached
