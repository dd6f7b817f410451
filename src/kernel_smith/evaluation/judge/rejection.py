"""How a candidate's evaluation ends early: one reason, with the evidence at hand."""

from __future__ import annotations

from typing import Any

from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.records import Reason

_LONGEST_MESSAGE = 8000
_ANYWHERE = {
    "compiler": Reason.COMPILER_REJECTED,
    "resources": Reason.OUT_OF_RESOURCES,
    "memory": Reason.MEMORY_LIMIT,
    "signature": Reason.WRONG_SIGNATURE,
    "protocol": Reason.PROTOCOL_VIOLATION,
}
_LOADING = _ANYWHERE | {
    "exception": Reason.LOAD_EXCEPTION,
    "timeout": Reason.LOAD_TIMEOUT,
    "died": Reason.LOAD_CRASHED,
}
_RUNNING = _ANYWHERE | {
    "exception": Reason.EXCEPTION,
    "timeout": Reason.CALL_TIMEOUT,
    "died": Reason.CRASHED,
}


def printable(text: str) -> str:
    """Text with words of the candidate's, made fit for records and terminals."""
    real = text.encode(errors="replace").decode()
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in real
    )


class Rejected(Exception):
    """The candidate failed. `evidence` holds further fields of the evaluation."""

    def __init__(self, reason: Reason, message: str = "", **evidence: Any) -> None:
        self.reason = reason
        self.message = printable(message[:_LONGEST_MESSAGE])
        self.evidence = evidence
        if "log" in evidence:
            self.evidence["log"] = printable(str(evidence["log"]))
        super().__init__(f"{reason}: {self.message}")

    @classmethod
    def from_failure(cls, failure: ChildFailed, *, loading: bool) -> Rejected:
        table = _LOADING if loading else _RUNNING
        return cls(table[failure.kind], failure.message, log=failure.log)


class Suspected(Rejected):
    """The same, by measurements that a busy machine may spoil for the innocent: looked at again."""
