"""How commands end, as a number.

| code | meaning |
|---|---|
| 0 | it went well: the candidate is correct, the best kernel is faster, which was confirmed |
| 1 | it ran, with a negative result: the candidate is not correct, nothing was found |
| 2 | bad usage or input (`BadInput`) |
| 3 | something is missing: a compiler, a GPU, a model that answers (`MissingPrerequisite`) |
| 4 | a defect of ours |
| 5 | correct, but measured too noisily to say whether it is faster (stage `unstable`) |
| 130 | interrupted |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_smith.records import Evaluation, Stage

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

NEGATIVE = 1
UNDECIDED = 5


def of_evaluation(evaluation: Evaluation) -> int:
    """A candidate that may well be faster is worth another try; one that is wrong is not."""
    if evaluation.stage is Stage.UNSTABLE:
        return UNDECIDED
    return 0 if evaluation.ok else NEGATIVE


def of_run(state: RunState) -> int:
    """What was chosen counts as faster when measuring it once more has shown that."""
    if state.confirmation is not None and state.confirmation.stage is Stage.UNSTABLE:
        return UNDECIDED
    return 0 if state.is_confirmed else NEGATIVE
