"""How much better each answer is than the other answers to the same question."""

from __future__ import annotations

from collections.abc import Sequence


def leave_one_out(rewards: Sequence[float | None], group_size: int) -> list[float]:
    """Each reward less the mean of the others of its group, which lie side by side.

    With the mean of all N rewards this is (R - mean) * N / (N - 1): an answer is not part of what
    it is compared with, and no standard deviation blows up the noise of groups that agree. Rewards
    that are not known count nowhere; their advantage is 0, as is that of one alone.
    """
    if group_size < 1 or len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rewards are not groups of {group_size}")
    advantages: list[float] = []
    for start in range(0, len(rewards), group_size):
        advantages += _of_group(rewards[start : start + group_size])
    return advantages


def _of_group(rewards: Sequence[float | None]) -> list[float]:
    known = [reward for reward in rewards if reward is not None]
    count = len(known)
    if count < 2:
        return [0.0] * len(rewards)
    mean = sum(known) / count
    return [0.0 if reward is None else (reward - mean) * count / (count - 1) for reward in rewards]
