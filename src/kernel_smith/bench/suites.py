"""The problems of suites: built-in ones, a KernelBench checkout, or any folder of problem files.

A file that cannot be read is a problem still: it is listed with the reason, and counted.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_smith.bench.categories import OTHER, category
from kernel_smith.bench.flashinfer import is_flashinfer, read_definitions
from kernel_smith.errors import BadInput
from kernel_smith.records import Precision, Task
from kernel_smith.records.letters import in_letters
from kernel_smith.tasks import SUITES, builtin_tasks, read_task, with_precision

KERNELBENCH_LEVELS = ("level1", "level2", "level3")
"""Those of the paper's 250 problems; level 4 needs weights from elsewhere, and is named on
purpose: `CHECKOUT/KernelBench/level4`."""
_ALONE = "all"  # the level of problems that have none


@dataclass(frozen=True)
class Problem:
    """One problem at one precision; without a task its file could not be read."""

    name: str
    suite: str
    level: str
    precision: Precision
    task: Task | None = None
    why_broken: str = ""

    @property
    def category(self) -> str:
        return category(self.task.source) if self.task else OTHER


@dataclass(frozen=True)
class Selection:
    """Which problems of the suites take part. Empty: all."""

    levels: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    sample: int | None = None
    sample_seed: int = 0

    def of(self, problems: Sequence[Problem]) -> list[Problem]:
        kept = [problem for problem in problems if self._wants(problem)]
        if self.sample is None:
            return kept
        drawn: list[Problem] = []
        for level in dict.fromkeys(problem.level for problem in kept):
            of_level = [problem for problem in kept if problem.level == level]
            rng = random.Random(f"{self.sample_seed}:{level}")
            chosen = rng.sample(range(len(of_level)), min(self.sample, len(of_level)))
            drawn += [of_level[index] for index in sorted(chosen)]
        return drawn

    def _wants(self, problem: Problem) -> bool:
        if self.levels and not any(
            problem.level in (level, f"level{level}") for level in self.levels
        ):
            return False
        if self.categories and not _matches(problem.category, self.categories):
            return False
        last = problem.name.rpartition("/")[2]
        return not self.globs or _matches(problem.name, self.globs) or _matches(last, self.globs)


def find_problems(
    words: Sequence[str], selection: Selection, precisions: Sequence[str] = ()
) -> list[Problem]:
    """Return the problems that somebody names, at each of the precisions, or at their own.

    Raises `BadInput` where a suite is not there, or where nothing is left of all.
    """
    found: dict[str, Problem] = {}
    for word in words:
        for problem in _suite(word):
            known = found.get(problem.name)
            if known is not None and known.task != problem.task:
                problem = replace(problem, name=f"{problem.suite}/{problem.name}")
            found[problem.name] = problem
    if not found:
        raise BadInput(
            f"{', '.join(words)}: no problems there, expected .py files or folders with a task.py",
            hint="name a folder such as KernelBench's level1, a file, or a suite of ours: cpu",
        )
    chosen = selection.of(list(found.values()))
    if not chosen:
        raise BadInput(
            f"none of the {len(found)} problems of {', '.join(words)} is selected",
            hint="see them with `kernel-smith bench list`, or select others",
        )
    wanted = precisions or (None,)
    return [_at(problem, precision) for precision in wanted for problem in chosen]


def _at(problem: Problem, precision: str | None) -> Problem:
    if problem.task is None:
        return problem if precision is None else replace(problem, precision=Precision(precision))
    task = with_precision(problem.task, precision)
    return replace(problem, task=task, precision=task.precision)


def _suite(word: str) -> Iterator[Problem]:
    if word in SUITES:
        for task in builtin_tasks(word):
            yield Problem(task.name, word, word, task.precision, task)
        return
    paths = [Path(word)] if Path(word).exists() else [Path(p) for p in sorted(glob.glob(word))]
    if not paths:
        raise BadInput(
            f"{word}: no such suite, expected one of {', '.join(SUITES)}, a folder or a file",
            hint="see `kernel-smith tasks list --suite cpu`, or check the path",
        )
    for path in paths:
        yield from (
            _folder(path, path.name or word)
            if path.is_dir()
            else [_file(path, path.resolve().parent.name)]
        )


def _folder(path: Path, suite: str) -> Iterator[Problem]:
    if is_flashinfer(path):
        for name, level, precision, task, why in read_definitions(path):
            yield Problem(name, suite, level, precision, task, why)
        return
    root = path / "KernelBench" if (path / "KernelBench" / "level1").is_dir() else path
    levels = [root / name for name in KERNELBENCH_LEVELS if (root / name).is_dir()]
    for part in levels or [root]:
        yield from (_file(file, suite, within=part) for file in _files(part))


def _files(root: Path) -> Iterator[Path]:
    """Yield all that may be a problem: starting kernels and hidden files are none."""
    found = []
    for folder, below, names in os.walk(root):  # which leaves out what is removed meanwhile
        below[:] = [name for name in below if not _is_hidden(name)]
        listed = [name for name in names if name.endswith(".py") and not _is_hidden(name)]
        found += [
            Path(folder, name) for name in listed if name == "task.py" or "task.py" not in names
        ]
    yield from sorted(found, key=lambda path: (path.parent, *_number(path)))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__"))


def _file(path: Path, suite: str, within: Path | None = None) -> Problem:
    place = path.parent if path.name == "task.py" else path.with_suffix("")
    name = str(place.relative_to(within)) if within and within != place else place.name
    level = _level(path.resolve())
    name = name if level == _ALONE or name.startswith(level) else f"{level}/{name}"
    name, suite = in_letters(name), in_letters(suite)
    try:
        task = read_task(path)
    except BadInput as error:
        why = error.what.replace(f"{path.parent}/", "")
        return Problem(name, suite, level, Precision.STRICT, why_broken=why)
    return Problem(name, suite, level, task.precision, task)


def _level(path: Path) -> str:
    return next((part for part in path.parts[-3:-1] if part.startswith("level")), _ALONE)


def _number(path: Path) -> tuple[int, str]:
    """KernelBench counts its files: 2 comes before 10."""
    head = path.name.partition("_")[0]
    return (int(head) if head.isdecimal() else 0, path.name)


def _matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)
