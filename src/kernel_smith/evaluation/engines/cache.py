"""Evaluations already made, on disk: the same candidate is not measured twice.

The key covers everything that could change the answer: task, candidate, options, machine, GPU where
one is used, versions and this project's own release.
"""

from __future__ import annotations

import contextlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine import devices
from kernel_smith.inline.cache import cache_root, keep_text
from kernel_smith.records import Candidate, Evaluation, Options, Task, content_hash

# What a backend's answers depend on, beside what all of them do.
_PACKAGES = {"triton": ("triton",)}
_NEVER_ON_GPU = frozenset({"cpp"})


class EvaluationCache:
    def __init__(self, root: Path | None = None) -> None:
        self._root = root or cache_root() / "evaluations"

    def get(
        self, task: Task, candidate: Candidate, options: Options, beside: Candidate | None = None
    ) -> Evaluation | None:
        path = self._path(task, candidate, options, beside)
        with contextlib.suppress(OSError, ValueError):
            return Evaluation.model_validate_json(path.read_text())
        return None

    def put(
        self,
        task: Task,
        candidate: Candidate,
        options: Options,
        evaluation: Evaluation,
        beside: Candidate | None = None,
    ) -> None:
        """Keep an evaluation, unless another attempt might end differently."""
        if not evaluation.stage.fleeting:
            path = self._path(task, candidate, options, beside)
            keep_text(path, evaluation.model_dump_json())

    def _path(
        self, task: Task, candidate: Candidate, options: Options, beside: Candidate | None
    ) -> Path:
        machine = (platform.node(), platform.machine(), str(os.cpu_count()))
        packages = ("kernel-smith", "torch", *_PACKAGES.get(candidate.backend, ()))
        versions = tuple(_version(name) for name in packages)
        key = content_hash(
            task.content_hash,
            candidate.content_hash,
            options.model_dump_json(),
            *((beside.content_hash,) if beside is not None else ()),
            *machine,
            *versions,
            *(() if candidate.backend in _NEVER_ON_GPU else _gpu()),
        )
        return self._root / key[:2] / f"{key}.json"


def _gpu() -> tuple[str, ...]:
    """Which GPU it would be, and none is an answer too: kernels are interpreted then."""
    found = devices.gpus()
    chosen = (f"{name}={os.environ.get(name)}" for name in devices.CHOICES)
    return (str(found.driver), *chosen, *found.names)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
