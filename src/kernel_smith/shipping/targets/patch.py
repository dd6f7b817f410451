"""An operation as a patch for a checkout, which is read and not changed."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.shipping.found import Optimized
from kernel_smith.shipping.parcel import pull_request
from kernel_smith.shipping.targets.base import Target
from kernel_smith.shipping.targets.op import Op
from kernel_smith.store import StepFacts

_SETTINGS = ("pyproject.toml", "setup.cfg", "ruff.toml", ".isort.cfg", ".flake8", ".editorconfig")


class Patch(NamedTuple):
    """A patch that applies."""

    text: str
    files: list[str]
    """What it adds and changes."""
    unformatted_by: list[str]
    """Formatters of the project that are not installed here."""


def make_patch(target: Target, op: Op, checkout: Path) -> Patch:
    """Return the difference that adds the operation. Raises `BadInput` if it does not apply."""
    target.check(checkout)
    _demand_git(checkout)
    added, changed = target.files(op), target.changed(op, checkout)
    there = [path for path in added if (checkout / path).exists()]
    if there:
        raise BadInput(f"{checkout / there[0]} exists already", hint="choose another --name")
    with tempfile.TemporaryDirectory(prefix="kernel-smith-") as folder:
        before, after = Path(folder, "a"), Path(folder, "b")
        before.mkdir()
        for path in changed:
            _write(before / path, (checkout / path).read_text("utf-8"))
        for path, text in {**added, **changed}.items():
            _write(after / path, text)
        missing = _format(target, checkout, after, list(added))
        text = _difference(Path(folder))
    _check_applies(text, checkout)
    return Patch(text, [*added, *changed], missing)


def with_text(
    patch: Patch, target: Target, op: Op, found: Optimized, lineage: Sequence[StepFacts]
) -> str:
    """Return the patch, and before it the text of a pull request, which `git apply` skips."""
    licence = (
        f"everything here is offered under the licence of {target.name}; the kernel is the run's, "
        "the reference is the task's own text"
    )
    text = pull_request(found, lineage, op.name, target.commands(op), licence)
    return f"{text}\n{patch.text}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _format(target: Target, checkout: Path, tree: Path, files: list[str]) -> list[str]:
    """Bring files into the project's form, by its own settings; name the tools that are missing."""
    settings = [name for name in _SETTINGS if (checkout / name).is_file()]
    for name in settings:
        shutil.copyfile(checkout / name, tree / name)
    missing = []
    for program, *arguments in target.formatters:
        command = _program(program)
        if command is None:
            missing.append(program)
            continue
        subprocess.run(
            [*command, *arguments, *files], cwd=tree, capture_output=True, text=True, check=False
        )
    for name in settings:
        (tree / name).unlink()
    for cache in tree.glob(".*_cache"):
        shutil.rmtree(cache)
    return sorted(set(missing))


def _program(name: str) -> Sequence[str] | None:
    found = shutil.which(name)
    if found is not None:
        return [found]
    return [sys.executable, "-m", name] if importlib.util.find_spec(name) else None


def _demand_git(checkout: Path) -> None:
    if shutil.which("git") is None:
        raise MissingPrerequisite("git is not installed", hint="install git, such as by apt")
    ran = _git(checkout, "rev-parse", "--is-inside-work-tree")
    if ran.returncode:
        raise BadInput(f"{checkout} is no git checkout", hint="clone the project with git")


def _difference(folder: Path) -> str:
    """Of the folders a and b, whose names are those that patches begin paths with."""
    ran = _git(folder, "diff", "--no-index", "--no-prefix", "--no-color", "a", "b")
    # Of a new file git names the second folder twice.
    return re.sub(r"^diff --git b/(.+) b/\1$", r"diff --git a/\1 b/\1", ran.stdout, flags=re.M)


def _check_applies(text: str, checkout: Path) -> None:
    ran = _git(checkout, "apply", "--check", "-", given=text)
    if ran.returncode:
        raise BadInput(
            f"the patch does not apply to {checkout}: {ran.stderr.strip()}",
            hint="commit or stash what was changed there, and try again",
        )


def _git(folder: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)
