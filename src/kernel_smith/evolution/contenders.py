"""A new best is measured again: the luckiest of many measurements looks best."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.evolution.state import RunState
from kernel_smith.records import Candidate, Elite, Evaluation, Remeasured


def measure_again(
    state: RunState, engine: Evaluator, contender: Candidate, champion: Elite
) -> Iterator[Remeasured]:
    """What counts is what the contender shows now; where it may be luck alone, the old best is
    measured, too. The events are to be applied as they come."""
    known = state.evaluated[contender.content_hash]
    timing, old = known.evaluation.timing, champion.evaluation.timing
    clear = timing is not None and old is not None and timing.speedup.low > old.speedup.high
    for candidate in (contender,) if clear else (contender, champion.candidate):
        evaluation = engine.submit(state.task, candidate, state.config.options).result()
        chosen_for_luck = candidate is contender
        if evaluation.ok and (chosen_for_luck or says_more(evaluation, champion.evaluation)):
            yield Remeasured(
                candidate=candidate.content_hash, evaluation=evaluation, at=datetime.now(UTC)
            )


def says_more(new: Evaluation, old: Evaluation) -> bool:
    """Is a measurement tighter than an earlier one, or does it contradict it?"""
    if new.timing is None or old.timing is None:
        return True
    later, earlier = new.timing.speedup, old.timing.speedup
    apart = later.low > earlier.high or later.high < earlier.low
    return apart or later.half_width <= earlier.half_width
