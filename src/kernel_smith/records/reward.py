"""What a step is worth to whoever trains a model: how much faster than its parent the child is.

Only what is certain of a gain counts: one that may be noise is worth as much as no change. Nothing
is given for what does not compile, is wrong, or cheats.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from kernel_smith.records.base import Record
from kernel_smith.records.candidate import Candidate
from kernel_smith.records.evaluation import Evaluation, Interval
from kernel_smith.records.verdict import Reason, Stage


class RewardRule(Record):
    """How a gain becomes a number."""

    scale: Literal["linear", "log2"] = Field(
        default="linear", description="the gain itself, or its binary logarithm"
    )
    low: float = Field(default=0.0, allow_inf_nan=False, description="no gain is worth less")
    high: float = Field(default=10.0, allow_inf_nan=False, description="no gain is worth more")

    failed: float = Field(
        default=0.0,
        allow_inf_nan=False,
        description="the reward of what does not compile, is wrong, cheats or takes too long",
    )

    def value(self, gain: float) -> float:
        scaled = math.log2(gain) if self.scale == "log2" else gain
        return min(max(scaled, self.low), self.high)


class RewardPair(Record):
    """A step to be rewarded."""

    task: int = Field(ge=0, description="which of the tasks that were sent along, from 0")
    parent: Candidate | None = Field(description="null: the step began with the reference itself")
    candidate: Candidate


class Reward(Record):
    value: float | None = Field(description="null: not known, see `message`")
    gain: Interval | None = Field(
        default=None, description="the parent's time over the child's, measured side by side"
    )
    stage: Stage | None = Field(default=None, description="how the child's evaluation ended")
    reason: Reason | None = None
    message: str = ""


def reward_of(evaluation: Evaluation, rule: RewardRule, *, has_parent: bool) -> Reward:
    """The reward of a child that was evaluated beside its parent, if it has one."""
    gain: Interval | None = None
    value: float | None = rule.failed
    message = evaluation.message
    if evaluation.ok:
        gain, message = _gain(evaluation, has_parent=has_parent)
        value = rule.value(gain.certain) if gain is not None else None
    elif evaluation.stage is Stage.UNSTABLE:  # the machine's doing more often than the child's
        value = None
    return Reward(
        value=value, gain=gain, stage=evaluation.stage, reason=evaluation.reason, message=message
    )


def _gain(evaluation: Evaluation, *, has_parent: bool) -> tuple[Interval | None, str]:
    if evaluation.timing is None:
        return None, "nothing was timed: the kernels ran elsewhere than where they are for"
    if not has_parent:
        return evaluation.timing.speedup, ""
    beside = evaluation.beside
    if beside is None:
        return None, "it was not timed beside its parent"
    if beside.gain is None:
        return None, f"the parent failed: {beside.reason}: {beside.message}"
    return beside.gain, ""
