"""Filters that ask what the judge said, where a program comes from, and what the prompt showed."""

from __future__ import annotations

from kernel_smith.records import TrainingStep
from kernel_smith.trajectories.filter_base import Filter, FilterSettings
from kernel_smith.trajectories.sameness import reference_key


class Correct(Filter):
    name = "correct"
    explains = "The child passed every gate by its last measuring, and so did its parent."

    def refuse(self, step: TrainingStep) -> str | None:
        child = step.child.evaluation
        if not child.ok:
            return f"the child failed: {child.reason}"
        if step.parent is not None and not step.parent.evaluation.ok:
            return f"the parent failed: {step.parent.evaluation.reason}"
        return None


class Timed(Filter):
    name = "timed"
    explains = "Child and parent were timed on the hardware that they are for."

    def refuse(self, step: TrainingStep) -> str | None:
        elites = (step.child, step.parent) if step.parent is not None else (step.child,)
        for elite in elites:
            evaluation = elite.evaluation
            if evaluation.made_up:
                return "the evaluation is made up"
            if evaluation.untimed or evaluation.timing is None:
                return "nothing was timed"
        return None


class HonestLineage(Filter):
    name = "honest-lineage"
    explains = (
        "Nothing that the step builds on was ever found wrong or cheating: the child, its "
        "ancestors, and the programs that it was given as examples."
    )

    def refuse(self, step: TrainingStep) -> str | None:
        if not step.flagged:
            return None
        return f"{step.flagged[0][:12]} did not keep its good verdict"


class NotSeenBetter(Filter):
    name = "not-seen-better"
    explains = (
        "The prompt showed no program that is faster than the parent, so the answer was not to be "
        "copied from it."
    )

    def refuse(self, step: TrainingStep) -> str | None:
        own = step.parent.score if step.parent is not None else 0.0
        if step.best_shown <= own:
            return None
        return f"the prompt shows a program with {step.best_shown:.3f}, the parent has {own:.3f}"


class BestStep(Filter):
    name = "best-step"
    explains = "The child was the best of its run when it was measured."

    def refuse(self, step: TrainingStep) -> str | None:
        return None if step.was_best else "the child was not the best of its run"


class HeldOut(Filter):
    name = "held-out"
    explains = (
        "The task is not kept for testing: neither by its name or family, nor by a reference that "
        "is the same up to names, numbers and inputs."
    )

    def __init__(self, settings: FilterSettings) -> None:
        super().__init__(settings)
        self._names = frozenset(settings.held_out)
        self._references = frozenset(map(reference_key, settings.held_out_references))

    def refuse(self, step: TrainingStep) -> str | None:
        task = step.task
        if task.name in self._names:
            return f"the task {task.name} is held out"
        if task.family in self._names:
            return f"the family {task.family} is held out"
        if self._references and reference_key(task.source) in self._references:
            return "the reference is that of a task that is held out"
        return None
