"""What an answer is worth: its parts, each by name, and their sum.

The gain is over the parent that the model was shown, measured side by side, and counts as far as it
is certain; doing nothing earns nothing, and so does noise. Whatever does not compile, is wrong or
cheats has no gain.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from kernel_smith.records import Evaluation, Interval, RewardRule, Stage, content_hash, reward_of
from kernel_smith.training.answers import Answer
from kernel_smith.training.config import RewardSettings
from kernel_smith.training.evidence import coverage, is_real_kernel

_PARSED, _COMPILED, _CORRECT = 0.25, 0.5, 1.0
_NEVER_BELOW, _RAMP = 0.3, 0.1  # of the share of time in authored kernels, when rejecting

# The gain as it was measured; settings of ours make a number of it.
_MEASURED = RewardRule(low=0.0, high=math.nextafter(math.inf, 0))


@dataclass(frozen=True)
class Graded:
    """An answer with its reward; None: not known, or left out."""

    reward: float | None
    parts: dict[str, float] = field(default_factory=dict)
    gain: Interval | None = None
    coverage: float | None = None
    message: str = ""


def grade(
    answer: Answer, evaluation: Evaluation | None, settings: RewardSettings, *, seed: int = 0
) -> Graded:
    """The reward of an answer. `evaluation` is None where there was nothing to evaluate."""
    if answer.program is None or evaluation is None:
        worth = settings.unparsed if answer.kind == "unparsed" else 0.0
        return Graded(worth, {answer.kind: worth}, message=answer.message)
    if evaluation.stage is Stage.CHEATING:
        return Graded(
            settings.cheating, {"cheating": settings.cheating}, message=evaluation.message
        )
    measured = reward_of(evaluation, _MEASURED, has_parent=answer.question.parent is not None)
    share = coverage(evaluation)
    if measured.value is None:  # too noisy, or the parent could not be timed
        return Graded(None, gain=measured.gain, coverage=share, message=measured.message)
    if settings.reject_lazy and evaluation.ok and not _keeps(share, answer, seed):
        message = f"left out: {share:.0%} of the time is in authored kernels"
        return Graded(None, gain=measured.gain, coverage=share, message=message)
    parts = _parts(answer, evaluation, settings, measured.gain, share)
    return Graded(sum(parts.values()), parts, measured.gain, share, measured.message)


def gain_value(gain: float, settings: RewardSettings) -> float:
    """0 for a program that is as fast as its parent."""
    value = math.log2(gain) if settings.scale == "log2" else gain - 1
    return min(max(value, settings.low), settings.high)


def staged_value(evaluation: Evaluation) -> float:
    """How far a program has got: parsed, compiled, correct."""
    if evaluation.ok:
        return _CORRECT
    failed_early = evaluation.stage in (Stage.SCREENED_OUT, Stage.COMPILE_ERROR)
    return _PARSED if failed_early else _COMPILED


def keep_probability(share: float) -> float:
    """Of an answer that is right, when lazy ones are rejected."""
    return min(max((share - _NEVER_BELOW) / _RAMP, 0.0), 1.0)


def _parts(
    answer: Answer,
    evaluation: Evaluation,
    settings: RewardSettings,
    gain: Interval | None,
    share: float | None,
) -> dict[str, float]:
    """A program that is no real kernel gets none of them."""
    assert answer.program is not None
    program = answer.program
    if not is_real_kernel(program.source, program.backend, evaluation):
        return {"rule": 0.0}
    parts = {"execution": settings.execution * gain_value(gain.certain, settings) if gain else 0.0}
    parts["rule"] = settings.rule
    parts["profiling"] = settings.profiling * (share or 0.0) if evaluation.ok else 0.0
    parts["staged"] = settings.staged * staged_value(evaluation)
    return parts


def _keeps(share: float | None, answer: Answer, seed: int) -> bool:
    """Drawn from the answer itself, so that a resumed training draws the same."""
    if share is None:
        return True
    drawn = random.Random(content_hash(str(seed), answer.question.id, answer.text)).random()
    return drawn < keep_probability(share)
