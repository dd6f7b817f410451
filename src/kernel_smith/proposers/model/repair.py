"""Near misses: which failures are worth a follow-up, and what the model is told about them."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from kernel_smith.programs.fold import Folded
from kernel_smith.proposers.model.blocks import without_thoughts
from kernel_smith.proposers.model.prompt import Prompts
from kernel_smith.records import Accuracy, Evaluation, Message, Proposal, Reason, Stage, Task

_STAGES = {Stage.SCREENED_OUT, Stage.COMPILE_ERROR, Stage.LOAD_ERROR, Stage.RUNTIME_ERROR}
_VALUES = {Reason.WRONG_VALUES, Reason.NON_FINITE, Reason.NONDETERMINISTIC}
_RIGHT_ELEMENTS = 0.5
_ERROR_FACTOR = 100.0
_MOST_WAITING = 32
_MOST_REPAIRS = 3


def is_near_miss(evaluation: Evaluation) -> bool:
    """Did it fail for a reason that can be named, and so be mended?"""
    if evaluation.stage in _STAGES:
        return True
    if evaluation.stage is not Stage.INCORRECT:
        return False
    # A wrong shape or dtype is a slip. Wrong values are one only if most of them are right.
    return evaluation.reason not in _VALUES or _is_close(evaluation.accuracy)


def _worth_mending(evaluation: Evaluation) -> int:
    """Tell how many repairs in a row: a compiler says what is wrong, wrong values say little."""
    return _MOST_REPAIRS if evaluation.stage in _STAGES else 1


def _is_close(accuracy: Accuracy | None) -> bool:
    if accuracy is None:
        return False
    error = accuracy.candidate_error
    if error is not None and error <= _ERROR_FACTOR * accuracy.allowed_error:
        return True
    total = sum(item.elements for item in accuracy.histogram)
    right = sum(b.elements for b in accuracy.histogram if b.up_to is not None and b.up_to <= 1)
    return total > 0 and right / total >= _RIGHT_ELEMENTS


def follow_up(
    prompts: Prompts, proposal: Proposal, shown: Folded, evaluation: Evaluation
) -> tuple[Message, ...]:
    """Return the conversation that led to a failed program, and what the judge said about it.

    `shown`: as the answer is to change it. One that is folded is shown anew, since the
    conversation may have folded other lines.

    If that is too long, the first message (the stable part) and the program have to do.
    """
    assert proposal.conversation is not None
    earlier = proposal.conversation.messages
    said = without_thoughts(proposal.conversation.response).strip()
    whole = proposal.details.get("mode") == "full" and not shown.hidden
    messages = (
        *earlier,
        Message(role="assistant", content=said),
        prompts.repair(Folded("") if whole else shown, evaluation),
    )
    if prompts.fits(messages):
        return messages
    return (earlier[0], prompts.repair(shown, evaluation))


@dataclass(frozen=True)
class NearMiss:
    proposal: Proposal
    evaluation: Evaluation


class Waiting:
    """Near misses that nobody has tried to mend. Shared by threads; the oldest are forgotten."""

    def __init__(self, max_repairs: int) -> None:
        self._max_repairs = max_repairs
        self._missed: dict[str, NearMiss] = {}
        self._lock = threading.Lock()

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """Note a near miss, and strike off what a proposal was the repair of."""
        with self._lock:
            self._missed.pop(str(proposal.details.get("repairs")), None)
            if proposal.conversation is None or not is_near_miss(evaluation):
                return
            if depth(proposal) < min(self._max_repairs, _worth_mending(evaluation)):
                missed = NearMiss(proposal, evaluation)
                self._missed[proposal.candidate.content_hash] = missed
            if len(self._missed) > _MOST_WAITING:
                del self._missed[next(iter(self._missed))]

    def take(self, task: Task, backend: str, parent: str | None) -> NearMiss | None:
        """Return one of the same task and backend, preferably a child of this parent."""
        with self._lock:
            fitting = [
                missed
                for missed in self._missed.values()
                if missed.evaluation.task_hash == task.content_hash
                and missed.proposal.candidate.backend == backend
            ]
            if not fitting:
                return None
            children = [missed for missed in fitting if parent in missed.proposal.parents[:1]]
            chosen = (children or fitting)[0]
            return self._missed.pop(chosen.proposal.candidate.content_hash)


def depth(proposal: Proposal) -> int:
    """Tell how many repairs led to it."""
    return int(proposal.details.get("repair_depth", 0))
