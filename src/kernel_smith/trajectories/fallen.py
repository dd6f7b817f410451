"""Programs that somebody caught: wrong or cheating in any measuring of any run of a store."""

from __future__ import annotations

from kernel_smith.records import (
    MEANINGS,
    Evaluation,
    Reason,
    Remeasured,
    Stage,
    StepEvaluated,
)
from kernel_smith.store import Store

_CAUGHT = (Stage.CHEATING, Stage.INCORRECT)
_MEASURING = ("step-evaluated", "remeasured")


class Fallen:
    """Who did not keep a good verdict, by task: right for one may be wrong for another."""

    def __init__(self) -> None:
        self._hashes: dict[str, set[bytes]] = {}

    @classmethod
    def of(cls, store: Store) -> Fallen:
        """Reads every verdict of a store; keeps a hash for each that was bad."""
        fallen = cls()
        for run in store.run_ids_matching(""):
            passed: set[bytes] = set()
            for _, event in store.events(run, kinds=_MEASURING):
                if isinstance(event, StepEvaluated | Remeasured):
                    fallen._note(event.evaluation, passed)
        return fallen

    def __contains__(self, program: tuple[str, str]) -> bool:
        """Whether a program is among them, given the hashes of its task and of itself."""
        task, candidate = program
        return bytes.fromhex(candidate) in self._hashes.get(task, ())

    def _note(self, evaluation: Evaluation, passed: set[bytes]) -> None:
        own = bytes.fromhex(evaluation.candidate_hash)
        if evaluation.ok:
            passed.add(own)
        # What may end differently the next time says nothing about the program.
        elif evaluation.stage in _CAUGHT or (own in passed and not evaluation.stage.fleeting):
            self._add(evaluation.task_hash, own)
        beside = evaluation.beside
        if beside is not None and _is_caught(beside.reason):
            self._add(evaluation.task_hash, bytes.fromhex(beside.candidate_hash))

    def _add(self, task: str, candidate: bytes) -> None:
        self._hashes.setdefault(task, set()).add(candidate)


def _is_caught(reason: Reason | None) -> bool:
    return reason is not None and MEANINGS[reason].stage in _CAUGHT
