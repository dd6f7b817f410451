"""Which tasks a model is trained on, which it is validated on, and which it must never see.

Tasks with the same name or the same reference belong together. Where a group goes depends on its
names and the seed alone, so a task that validates one data set validates the next one, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from kernel_smith.errors import BadInput
from kernel_smith.records import RunStarted, Task, content_hash
from kernel_smith.store import Store
from kernel_smith.tasks import builtin_tasks, find_task
from kernel_smith.tasks.catalog import SUITES
from kernel_smith.trajectories.formats import Split
from kernel_smith.trajectories.sameness import reference_key

_DIGITS = 13  # of a hash, as many as a float tells apart
_SHOWN = 8


class TaskKey(NamedTuple):
    """What decides where a task goes."""

    name: str
    reference: bytes

    @classmethod
    def of(cls, task: Task) -> TaskKey:
        return cls(task.name, reference_key(task.source))


def assign(tasks: Iterable[TaskKey], *, validation: float, seed: int) -> dict[TaskKey, Split]:
    """Where each task goes: about `validation` of the groups, and at least one of several."""
    groups = {
        content_hash(str(seed), *sorted({task.name for task in group})): group
        for group in _groups(sorted(set(tasks)))
    }
    chosen = {key for key in groups if int(key[:_DIGITS], 16) < validation * 16**_DIGITS}
    if validation and len(groups) > 1:
        chosen = (chosen or {min(groups)}) - {max(groups)}  # something is to be learnt from
    return {
        task: "validation" if key in chosen else "train"
        for key, group in groups.items()
        for task in group
    }


def _groups(tasks: Sequence[TaskKey]) -> list[list[TaskKey]]:
    """Tasks that share a name or a reference with another of the group."""
    leader: dict[str | bytes, str | bytes] = {}

    def lead(key: str | bytes) -> str | bytes:
        while leader.setdefault(key, key) != key:
            key = leader[key]
        return key

    for task in tasks:
        leader[lead(task.name)] = lead(task.reference)
    groups: dict[str | bytes, list[TaskKey]] = {}
    for task in tasks:
        groups.setdefault(lead(task.name), []).append(task)
    return list(groups.values())


def tasks_in(stores: Sequence[Path]) -> Iterator[Task]:
    """The task of every run."""
    for path in stores:
        with Store.open(path) as store:
            for run in store.run_ids_matching(""):
                _, event = next(store.events(run))
                assert isinstance(event, RunStarted)
                yield event.task


def references_of(wanted: Sequence[str], tasks: Collection[Task]) -> tuple[str, ...]:
    """The sources of the tasks to hold out, which may be called something else elsewhere.

    `wanted` names tasks or families, of these or built-in ones, or task files. A name that is not
    known is likely a slip, and a slip would leak what is to be tested on.
    """
    if not wanted:
        return ()
    known = [*tasks, *(task for suite in SUITES for task in builtin_tasks(suite))]
    sources: dict[str, None] = {}
    for name in wanted:
        matching = [task for task in known if name in (task.name, task.family)]
        sources.update(dict.fromkeys(task.source for task in matching or [_file(name, tasks)]))
    return tuple(sources)


def _file(name: str, tasks: Collection[Task]) -> Task:
    try:
        return find_task(name)
    except BadInput:
        if Path(name).is_file():
            raise
        raise BadInput(
            f"nothing to hold out is called {name!r}",
            hint="--hold-out takes a task, a family or a task file; these runs have the tasks "
            f"{_listed(task.name for task in tasks)} of the families "
            f"{_listed(task.family for task in tasks)}",
        ) from None


def _listed(names: Iterable[str]) -> str:
    known = sorted(set(names))
    return ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
