"""How commands end, as a number.

| code | meaning |
|---|---|
| 0 | it went well: the candidate is correct, the best kernel is faster |
| 1 | it ran, with a negative result: the candidate is not correct, nothing was found |
| 2 | bad usage or input (`BadInput`) |
| 3 | something is missing on this machine (`MissingPrerequisite`) |
| 4 | a defect of ours |
| 5 | correct, but measured too noisily to say whether it is faster (stage `unstable`) |
| 130 | interrupted |
"""

from __future__ import annotations

from kernel_smith.records import Evaluation, Stage

NEGATIVE = 1
UNDECIDED = 5


def of_evaluation(evaluation: Evaluation) -> int:
    """A candidate that may well be faster is worth another try; one that is wrong is not."""
    if evaluation.stage is Stage.UNSTABLE:
        return UNDECIDED
    return 0 if evaluation.ok else NEGATIVE
