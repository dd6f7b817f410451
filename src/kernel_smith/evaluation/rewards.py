"""Rewards for many steps at once, from whichever engine: what a trainer asks for after each batch.

Steps of the same task and parent are handed in together, so that whoever evaluates them has both
ready. Nothing that a candidate does raises here.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from kernel_smith.errors import InternalError, UserError
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import (
    Evaluation,
    Options,
    Reward,
    RewardPair,
    RewardRule,
    Task,
    reward_of,
)


def rewards(
    engine: Evaluator,
    tasks: Sequence[Task],
    pairs: Sequence[RewardPair],
    *,
    options: Options | None = None,
    rule: RewardRule | None = None,
) -> list[Reward]:
    """In the order of `pairs`, whose `task` counts in `tasks`."""
    futures: dict[int, Future[Evaluation]] = {}
    for index in sorted(range(len(pairs)), key=lambda index: _neighbourhood(pairs[index])):
        pair = pairs[index]
        futures[index] = engine.submit(
            tasks[pair.task], pair.candidate, options, beside=pair.parent
        )
    return [_reward(futures[index], pair, rule or RewardRule()) for index, pair in enumerate(pairs)]


def _neighbourhood(pair: RewardPair) -> tuple[int, str]:
    return pair.task, pair.parent.content_hash if pair.parent is not None else ""


def _reward(future: Future[Evaluation], pair: RewardPair, rule: RewardRule) -> Reward:
    try:
        evaluation = future.result()
    except (UserError, InternalError) as error:
        return Reward(value=None, message=str(error))
    return reward_of(evaluation, rule, has_parent=pair.parent is not None)
