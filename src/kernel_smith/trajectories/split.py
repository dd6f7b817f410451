"""Which tasks a model is trained on, which it is validated on, and which it must never see.

Tasks with the same name or the same reference belong together. Where a group goes depends on its
names and the seed alone, so a task that validates one data set validates the next one, too.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kernel_smith.archive.normalise import program
from kernel_smith.errors import BadInput
from kernel_smith.records import Task, content_hash
from kernel_smith.tasks import find_task

Part = Literal["train", "validation", "held-out"]

# What a task file says about inputs and settings, and not about the reference.
_NOT_REFERENCE = frozenset({"TASK", "get_inputs", "get_init_inputs"})


@dataclass(frozen=True)
class TaskFacts:
    """What decides where a task goes."""

    name: str
    family: str
    structure: str

    @classmethod
    def of(cls, task: Task) -> TaskFacts:
        return cls(task.name, task.family, structure(task.source))


def structure(source: str) -> str:
    """Equal for references that differ in names, formatting, comments, inputs and sizes alone."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            tree.body = [node for node in tree.body if not _is_aside(node)]
            source = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass  # compared as it stands
    return content_hash("\n".join(program(source).atoms))


def _is_aside(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.FunctionDef):
        return node.name in _NOT_REFERENCE
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id in _NOT_REFERENCE for target in targets)


def assign(
    tasks: Iterable[TaskFacts], *, hold_out: Sequence[str], validation: float, seed: int
) -> dict[TaskFacts, Part]:
    """Where each task goes. `hold_out` names tasks, built-in ones or task files too, or families.

    About `validation` of the groups validate, and at least one where there are several.
    """
    found = sorted(set(tasks), key=lambda facts: (facts.name, facts.structure))
    if not 0 <= validation < 1:
        raise BadInput(
            f"a share of {validation:g} cannot be for validation", hint="choose 0 or more, below 1"
        )
    held_names, held_structures = _held_out(found, hold_out)
    parts: dict[TaskFacts, Part] = {}
    free: dict[str, list[TaskFacts]] = {}
    for group in _groups(found):
        if any(f.name in held_names or f.structure in held_structures for f in group):
            parts |= dict.fromkeys(group, "held-out")
        else:
            free[content_hash(str(seed), *sorted({facts.name for facts in group}))] = group
    chosen = {key for key in free if int(key[:13], 16) / 16**13 < validation}
    if validation and len(free) > 1:
        chosen = chosen or {min(free)}
        chosen -= {max(free)}  # something is to be learnt from
    for key, group in free.items():
        parts |= dict.fromkeys(group, "validation" if key in chosen else "train")
    return parts


def _held_out(found: Sequence[TaskFacts], hold_out: Sequence[str]) -> tuple[set[str], set[str]]:
    """Names and references. One that is not known at all is likely a slip, and would leak."""
    held: list[TaskFacts] = []
    for wanted in hold_out:
        matching = [facts for facts in found if wanted in (facts.name, facts.family)]
        try:
            matching.append(TaskFacts.of(find_task(wanted)))
        except BadInput:
            if not matching:
                raise BadInput(
                    f"nothing to hold out is called {wanted!r}",
                    hint="--hold-out takes a task, a family or a task file; these runs have "
                    f"{_listed(facts.name for facts in found)} of the families "
                    f"{_listed(facts.family for facts in found)}",
                ) from None
        held += matching
    return {facts.name for facts in held}, {facts.structure for facts in held}


def _groups(found: Sequence[TaskFacts]) -> list[list[TaskFacts]]:
    """Tasks that share a name or a reference with another of the group."""
    leader: dict[str, str] = {}

    def lead(key: str) -> str:
        while leader.setdefault(key, key) != key:
            key = leader[key]
        return key

    for facts in found:
        leader[lead(f"name {facts.name}")] = lead(f"structure {facts.structure}")
    groups: dict[str, list[TaskFacts]] = {}
    for facts in found:
        groups.setdefault(lead(f"name {facts.name}"), []).append(facts)
    return list(groups.values())


def counted(parts: Mapping[TaskFacts, Part]) -> dict[Part, int]:
    """How many tasks each part has, by name."""
    names: dict[Part, set[str]] = {}
    for facts, part in parts.items():
        names.setdefault(part, set()).add(facts.name)
    return {part: len(each) for part, each in names.items()}


def _listed(names: Iterable[str]) -> str:
    known = sorted(set(names))
    return ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
