"""The merger: a program that takes each workload's function from whoever is best there.

It needs no model, and no luck but that of others: what two programs gained on different workloads
is gained by one that has the functions of both. It is judged as any other.
"""

from __future__ import annotations

import threading

from kernel_smith.programs.merge import has_function, with_functions, workload_function
from kernel_smith.proposers.base import NothingToPropose, parent_of
from kernel_smith.records import Elite, Evaluation, Proposal, Request, content_hash

_WORTH_IT = 1.01  # what a function gains on its workload, by what is certain of both programs


class Merger:
    """A `Writer`."""

    name = "merger"

    def __init__(self) -> None:
        self._tried: set[str] = set()
        self._lock = threading.Lock()

    def propose(self, request: Request) -> Proposal:
        """Return the parent with functions of those that are faster somewhere. Raises
        `NothingToPropose`."""
        parent = parent_of(request)
        source, taken = parent.candidate.source, {}
        for workload, elite in sorted(request.specialists.items()):
            if not _is_faster(elite, parent, workload):
                continue
            donor = {workload_function(workload): elite.candidate.source}
            merged = with_functions(source, donor)
            if merged is not None and merged != source:
                source, taken[workload] = merged, elite.candidate.content_hash
        with self._lock:
            key = content_hash(source)
            if not taken or key in self._tried:
                raise NothingToPropose("nobody has a function that this program could take over")
            self._tried.add(key)
        return self._proposal(parent, source, taken)

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        with self._lock:
            self._tried.add(content_hash(proposal.candidate.source))

    def _proposal(self, parent: Elite, source: str, taken: dict[str, str]) -> Proposal:
        whose = ", ".join(f"{workload} of {name[:8]}" for workload, name in taken.items())
        return Proposal(
            candidate=parent.candidate.model_copy(update={"source": source}),
            proposer=self.name,
            parents=(parent.candidate.content_hash, *dict.fromkeys(taken.values())),
            summary=f"merge: {whose}",
            details={"taken": taken},
        )


def _is_faster(elite: Elite, parent: Elite, workload: str) -> bool:
    name = workload_function(workload)
    here, there = parent.candidate.source, elite.candidate.source
    if not has_function(here, name) or not has_function(there, name):
        return False
    mine, theirs = _certain(parent, workload), _certain(elite, workload)
    return mine > 0 and theirs > _WORTH_IT * mine


def _certain(elite: Elite, workload: str) -> float:
    timing = elite.evaluation.timing
    found = timing.workloads if timing is not None else ()
    speeds = (each.baselines[0].speedup.low for each in found if each.workload == workload)
    return next(speeds, 0.0)
