"""Programs of a folder: written elsewhere, each for a problem that its place or its name says.

Found for a problem such as `level1/23_Softmax`:

    F/level1/23_Softmax.py            or F/23_Softmax.py
    F/level1/23_Softmax/*.py          or F/23_Softmax/*.py, in the order of their numbers
    F/level_1_problem_23_sample_0*.py as KernelBench's own tools call them
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from kernel_smith.bench.suites import Problem
from kernel_smith.errors import BadInput, reason_of
from kernel_smith.records import MAX_SOURCE, Candidate

_NUMBER = re.compile(r"\d+")
_KERNELBENCH = re.compile(r"level_(\d+)_problem_(\d+)_sample_\d+\w*\.py")


def programs_for(folder: Path, problem: Problem, backend: str) -> list[Candidate]:
    """In the order in which they are to be told; none where there is none."""
    return [_read(path, folder, backend) for path in _files_for(folder, problem)]


def check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise BadInput(
            f"{folder}: no such folder, expected one with programs",
            hint="name a folder that holds a file, or a folder of files, per problem",
        )


def unused_programs(folder: Path, problems: Iterable[Problem]) -> list[Path]:
    """Files that belong to no problem, as where a name is misspelt."""
    used = {path for problem in problems for path in _files_for(folder, problem)}
    return sorted(path for path in folder.rglob("*.py") if path not in used)


def _files_for(folder: Path, problem: Problem) -> list[Path]:
    last = problem.name.rpartition("/")[2]
    found: list[Path] = []
    for name in dict.fromkeys((problem.name, last)):
        found += [folder / f"{name}.py"] if (folder / f"{name}.py").is_file() else []
        found += sorted((folder / name).glob("*.py"), key=_order)
    number, level = last.partition("_")[0], problem.level.removeprefix("level")
    for path in sorted(folder.glob("level_*_problem_*.py"), key=_order):
        named = _KERNELBENCH.fullmatch(path.name)
        if named is not None and named.groups() == (level, number):
            found.append(path)
    return found


def _order(path: Path) -> tuple[list[int], str]:
    return [int(number) for number in _NUMBER.findall(path.name)], path.name


def _read(path: Path, folder: Path, backend: str) -> Candidate:
    try:
        source = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path}: cannot be read ({reason_of(error)}), expected a program",
            hint="mend it or remove it",
        ) from None
    if len(source) > MAX_SOURCE:
        raise BadInput(
            f"{path}: {len(source)} characters, expected a program of at most {MAX_SOURCE}",
            hint="remove it from the folder",
        )
    return Candidate(backend=backend, source=source, name=str(path.relative_to(folder)))
