"""Which of the compiler's programs the judge gets to see: what leads a sweep, on any workload.

By its recipes the compiler writes up to seven more programs of a task for a GPU, which differ in
how they reduce, tile and fuse, and one is fastest on few rows, another on many. To judge each of
them takes more of the device's time than a short run has. So they are swept beside the first, and
a program that takes each workload's function from whoever led there is the one to be judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_smith.errors import InternalError, UserError
from kernel_smith.programs.merge import with_functions, workload_function
from kernel_smith.programs.normalise import fingerprint
from kernel_smith.proposers.base import TryOut
from kernel_smith.records import Candidate, Proposal, Sweep, Task

_WORTH_TAKING = 1.01  # what is certain of a function's gain on its workload


@dataclass(frozen=True)
class Outcome:
    """What is to be judged, and what is said of every other program."""

    proposals: tuple[Proposal, ...]
    left: tuple[str, ...]
    device_seconds: float = 0.0


def hold_race(task: Task, first: Candidate, others: Sequence[Proposal], race: TryOut) -> Outcome:
    """Return the program of those that lead; where nothing could be swept, all of them."""
    entrants = _different(first, others)
    if not entrants:
        return Outcome((), ("all others are the same program as the first",))
    try:
        sweep = race(task, first, [each.candidate.source for each in entrants])
    except (UserError, InternalError) as error:
        sweep = Sweep(problem=str(error))
    if not sweep.timed:
        return Outcome(tuple(entrants), (), sweep.seconds)
    winner = _made_of_leaders(task, first, entrants, sweep)
    behind = f"swept beside the first program: {len(entrants)} programs by other recipes"
    if winner is None:
        return Outcome((), (f"{behind}, and none leads anywhere",), sweep.seconds)
    return Outcome((winner,), (behind,), sweep.seconds)


def _different(first: Candidate, others: Sequence[Proposal]) -> list[Proposal]:
    """Return those that differ in more than their looks."""
    known = {fingerprint(first)}
    found = []
    for each in others:
        program = fingerprint(each.candidate)
        if program not in known:
            known.add(program)
            found.append(each)
    return found


def _made_of_leaders(
    task: Task, first: Candidate, entrants: Sequence[Proposal], sweep: Sweep
) -> Proposal | None:
    source, taken = first.source, {}
    for workload in task.workloads:
        leader = _leader(sweep, workload.name)
        if leader is None:
            continue
        donor = entrants[leader].candidate
        merged = with_functions(source, {workload_function(workload.name): donor.source})
        if merged is not None:
            source, taken[workload.name] = merged, donor.name
    if not taken:
        return None
    whose = ", ".join(f"{workload} of {name}" for workload, name in taken.items())
    name = f"{task.name}_leaders.py"
    return Proposal(
        candidate=first.model_copy(update={"source": source, "name": name}),
        proposer=entrants[0].proposer,
        summary=f"what led among {1 + len(entrants)} programs of the compiler's: {whose}",
        details={"taken": taken},
        device_seconds=sweep.seconds,
    )


def _leader(sweep: Sweep, workload: str) -> int | None:
    """The number of whoever is certainly fastest on a workload; None for the first program."""
    certain = {
        number: swept.by_workload[workload].low
        for number, swept in enumerate(sweep.swept)
        if swept.reason is None and workload in swept.by_workload
    }
    leader = max(certain, key=certain.__getitem__, default=None)
    return leader if leader is not None and certain[leader] > _WORTH_TAKING else None
