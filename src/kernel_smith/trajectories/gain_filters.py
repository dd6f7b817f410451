"""Filters that ask for a gain that is certain. First steps pass: to be correct is enough there."""

from __future__ import annotations

from abc import abstractmethod

from kernel_smith.records import StepGain, TrainingStep
from kernel_smith.trajectories.filter_base import Filter

_NOT_MEASURED = "the gain over the parent was not measured"


class _LaterSteps(Filter):
    """Lets first steps pass, and refuses later ones without a gain."""

    def refuse(self, step: TrainingStep) -> str | None:
        if step.first:
            return None
        return _NOT_MEASURED if step.gain is None else self._refuse_gain(step.gain)

    @abstractmethod
    def _refuse_gain(self, gain: StepGain) -> str | None: ...


class Faster(_LaterSteps):
    name = "faster"
    explains = (
        "A later step is faster than its parent beyond doubt: what is certain of its gain is above "
        "the least that is asked for."
    )

    def _refuse_gain(self, gain: StepGain) -> str | None:
        least = self._settings.least_gain
        if gain.overall.certain > least:
            return None
        return f"the gain may be as low as {gain.overall.low:.3f}, above {least:g} is asked for"


class MeasuredAgain(_LaterSteps):
    name = "measured-again"
    explains = (
        "The gain of a later step was measured again: it does not come from the measuring that "
        "made the step look good."
    )

    def _refuse_gain(self, gain: StepGain) -> str | None:
        return None if gain.measured_again else "the gain was not measured again"


class FasterEverywhere(_LaterSteps):
    name = "faster-everywhere"
    explains = "A later step makes no workload slower, but for what noise explains."

    def _refuse_gain(self, gain: StepGain) -> str | None:
        if not gain.workloads:
            return "the gain was not measured by workload"
        worst = min(gain.workloads, key=lambda each: each.gain.low)
        if worst.gain.low > 1 - self._settings.slack:
            return None
        return f"workload {worst.workload} may be slower: {worst.gain.low:.3f}"


class Tail(_LaterSteps):
    name = "tail"
    explains = "A later step does not buy its gain with a worse P99 on any workload."

    def _refuse_gain(self, gain: StepGain) -> str | None:
        if gain.p99 is None:
            return "the P99s cannot be compared"
        if gain.p99 * (1 + self._settings.tail) >= 1:
            return None
        return f"the P99 of a workload is {1 / gain.p99:.3f} times that of the parent"


class NotAnArtefact(Filter):
    name = "not-an-artefact"
    explains = (
        "A later step is also faster than its grandparent beyond doubt: it does not merely take "
        "back what the step before had lost."
    )

    def refuse(self, step: TrainingStep) -> str | None:
        if step.grandparent is None:
            return None
        gain = step.gain_over_grandparent
        if gain is None:
            return "the gain over the grandparent was not measured"
        if gain.overall.certain > 1:
            return None
        return f"the gain over the grandparent may be as low as {gain.overall.low:.3f}"
