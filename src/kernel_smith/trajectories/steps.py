"""The steps of runs, one by one: every proposal that was evaluated, with all that is known of it.

What is read:

* A program's verdict is that of its last measuring in the run, for a child and for its parent. The
  gain is the last one that was timed side by side, if any was.
* Proposals that were dropped, or never evaluated, are no steps. Neither are those made from a
  program that the run does not know or never evaluated.
* A repair counts as a step from the program that was to be changed, not from the failed attempt
  between them: that one was never worth anything. `repairs` names it.

A run is read twice, once for a light index and once for its steps, and the store once more before
that for the programs that were caught. So memory does not grow with the number of steps, other than
by a hash for each program that was caught and a few numbers for each step of one run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.blocks import find_blocks
from kernel_smith.records import (
    Elite,
    Evaluation,
    Proposal,
    Remeasured,
    StepEvaluated,
    StepGain,
    StepProposed,
    Task,
    TrainingStep,
)
from kernel_smith.records.gains import gain_over, gain_over_reference
from kernel_smith.store import Store
from kernel_smith.store.store import LATEST
from kernel_smith.trajectories.fallen import Fallen
from kernel_smith.trajectories.lineage import RunIndex, text_key

_REMEMBERED_PROGRAMS = 128
_REMEMBERED_MESSAGES = 64


def read_steps(paths: Sequence[Path], *, runs: Sequence[str] = ()) -> Iterator[TrainingStep]:
    """Every evaluated step of these stores, the oldest run first.

    `runs`: ids, their unique beginnings, or `latest`; none means all.
    """
    for path, names in _selected(paths, runs):
        with Store.open(path) as store:
            fallen = Fallen.of(store)
            for name in names:
                yield from _RunReader(store, path, name, fallen).steps()


def _selected(paths: Sequence[Path], runs: Sequence[str]) -> list[tuple[Path, list[str]]]:
    """The runs of each store, so that a wrong name is found before anything is read."""
    selected: list[tuple[Path, list[str]]] = []
    missing = dict.fromkeys(runs)
    for path in paths:
        with Store.open(path) as store:
            known = store.run_ids_matching("")[::-1]
            there = [each for each in runs if _has(store, each)]
            chosen = {store.find_run(each) for each in there}
        for each in there:
            missing.pop(each, None)
        selected.append((path, [name for name in known if name in chosen or not runs]))
    if missing:
        stores = ", ".join(map(str, paths))
        raise BadInput(
            f"{stores}: no run is called {next(iter(missing))!r}, expected an id, its beginning "
            f"or `{LATEST}`",
            hint="KERNEL_SMITH_STORE=FILE kernel-smith runs list shows the runs of a store",
        )
    return selected


def _has(store: Store, wanted: str) -> bool:
    return bool(store.run_ids_matching("" if wanted == LATEST else wanted))


class _RunReader:
    """One run of a store. Programs and evaluations are fetched when a step needs them."""

    def __init__(self, store: Store, path: Path, run: str, fallen: Fallen) -> None:
        self._store = store
        self._path = path
        self._run = run
        self._fallen = fallen
        self._index = RunIndex.of(store.events(run))
        self._elites: OrderedDict[str, Elite] = OrderedDict()

    def steps(self) -> Iterator[TrainingStep]:
        task = self._index.task
        if task is None:
            return
        for _, event in self._store.events(self._run, kinds=("step-proposed",)):
            if isinstance(event, StepProposed) and self._is_step(event):
                yield self._step(task, event.step, event.proposal)

    def _is_step(self, event: StepProposed) -> bool:
        parents = event.proposal.parents
        known = not parents or self._index.is_measured(parents[0])
        return known and event.step in self._index.evaluated

    def _step(self, task: Task, number: int, proposal: Proposal) -> TrainingStep:
        own = proposal.candidate.content_hash
        child = self._elite(own)
        parent = self._elite(proposal.parents[0]) if proposal.parents else None
        grandparent = self._grandparent(parent)
        shown = self._shown(proposal)
        return TrainingStep(
            store=str(self._path),
            run=self._run,
            step=number,
            task=task,
            proposer=proposal.proposer,
            summary=proposal.summary,
            parent=parent,
            child=child,
            grandparent=grandparent.candidate if grandparent else None,
            gain=self._gain(child, parent) if parent else gain_over_reference(child.evaluation),
            gain_over_grandparent=self._gain(child, grandparent) if grandparent else None,
            depth=sum(1 for _ in self._ancestors(proposal)),
            flagged=self._flagged(task, proposal),
            shown=shown,
            best_shown=max(map(self._index.score_of, shown), default=0.0),
            was_best=self._index.was_best(own),
            repairs=proposal.details.get("repairs"),
            conversation=proposal.conversation,
        )

    def _gain(self, child: Elite, other: Elite) -> StepGain | None:
        own = self._index.programs[child.candidate.content_hash]
        its = self._index.programs[other.candidate.content_hash]
        if not child.evaluation.ok:
            return None
        together = own.beside.get(other.candidate.content_hash)
        if together is not None:
            gain = gain_over(self._evaluation(together), other.evaluation)
            again = together != own.first
        else:
            gain = gain_over(child.evaluation, other.evaluation)
            again = own.measured != own.first and its.measured != its.first
        return gain.model_copy(update={"measured_again": again}) if gain is not None else None

    def _ancestors(self, proposal: Proposal) -> Iterator[str]:
        return self._index.lineage(proposal.parents[0]) if proposal.parents else iter(())

    def _grandparent(self, parent: Elite | None) -> Elite | None:
        if parent is None:
            return None
        before = self._index.programs[parent.candidate.content_hash].parent
        return self._elite(before) if before and self._index.is_measured(before) else None

    def _flagged(self, task: Task, proposal: Proposal) -> tuple[str, ...]:
        """Also among the programs that the child may have been copied from."""
        own = proposal.candidate.content_hash
        hashes = dict.fromkeys((own, *self._ancestors(proposal), *proposal.parents[1:]))
        identity = task.content_hash
        return tuple(each for each in hashes if (identity, each) in self._fallen)

    def _shown(self, proposal: Proposal) -> tuple[str, ...]:
        """What the proposer says that it showed, and what is found in the messages."""
        named = [*proposal.parents[1:]]
        if "repairs" in proposal.details:
            named.append(proposal.details["repairs"])
        for message in proposal.conversation.messages if proposal.conversation else ():
            found = (self._index.by_text.get(key) for key in _code_in(message.content))
            named += [each for each in found if each is not None]
        return tuple(each for each in dict.fromkeys(named) if each not in proposal.parents[:1])

    def _elite(self, candidate: str) -> Elite:
        """A program with its last evaluation; those of the last steps are remembered."""
        if candidate in self._elites:
            self._elites.move_to_end(candidate)
            return self._elites[candidate]
        program = self._index.programs[candidate]
        elite = Elite(
            candidate=self._store.candidate(candidate),
            evaluation=self._evaluation(program.measured),
        )
        self._elites[candidate] = elite
        if len(self._elites) > _REMEMBERED_PROGRAMS:
            self._elites.popitem(last=False)
        return elite

    def _evaluation(self, sequence: int) -> Evaluation:
        event = self._store.event(self._run, sequence)
        assert isinstance(event, StepEvaluated | Remeasured)
        return event.evaluation


@lru_cache(maxsize=_REMEMBERED_MESSAGES)
def _code_in(message: str) -> tuple[bytes, ...]:
    """The keys of the code blocks of a message. Those of the system are the same over a run."""
    return tuple(text_key(block.code) for block in find_blocks(message)[0])
