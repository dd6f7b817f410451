"""A new best is measured again: the luckiest of many measurements looks best."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Candidate, Elite, Evaluation, Remeasured
from kernel_smith.runs.state import RunState


def measure_again(
    state: RunState, engine: Evaluator, contender: Candidate, champion: Elite
) -> Iterator[Remeasured]:
    """What counts is what the contender shows now, side by side with the old best.

    Unless it is faster there beyond doubt, and by its own figures as well, the old best is measured
    again, too, if it was not confirmed: nothing as short says more than that did. Whoever fails now
    has failed. The events are to be applied as they come.
    """
    options = state.config.options
    shown = engine.submit(state.task, contender, options, beside=champion.candidate).result()
    if not shown.stage.fleeting:
        yield _remeasured(contender, shown)
    confirmed = champion.candidate.content_hash in state.confirmations
    if confirmed or _is_clear(shown, champion.evaluation):
        return
    evaluation = engine.submit(state.task, champion.candidate, options).result()
    if not evaluation.stage.fleeting and says_more(evaluation, champion.evaluation):
        yield _remeasured(champion.candidate, evaluation)


def _remeasured(candidate: Candidate, evaluation: Evaluation) -> Remeasured:
    at = datetime.now(UTC)
    return Remeasured(candidate=candidate.content_hash, evaluation=evaluation, at=at)


def _is_clear(shown: Evaluation, old: Evaluation) -> bool:
    gain = shown.beside.gain if shown.beside is not None else None
    if gain is None or shown.timing is None or old.timing is None:
        return False
    return gain.low > 1 and shown.timing.speedup.low > old.timing.speedup.low


def says_more(new: Evaluation, old: Evaluation) -> bool:
    """Is a measurement tighter than an earlier one, or does it contradict it?"""
    if new.timing is None or old.timing is None:
        return True
    later, earlier = new.timing.speedup, old.timing.speedup
    apart = later.low > earlier.high or later.high < earlier.low
    return apart or later.half_width <= earlier.half_width
