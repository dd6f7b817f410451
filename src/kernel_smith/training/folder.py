"""The folder that a training writes: what it began with, where it stands, and what it may resume.

OUTPUT/training.json     settings, data, versions and state
OUTPUT/checkpoint-N      the trainer's own, the last few
OUTPUT/metrics.jsonl     and what else `journal.py` writes; curves.png
OUTPUT/final             the model, and the adapter if one was trained
"""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from kernel_smith.errors import BadInput
from kernel_smith.training.config import MAY_CHANGE, TrainingSettings

Kind = Literal["sft", "rl", "chooser"]
State = Literal["running", "stopped", "done"]

_INFO = "training.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_VERSIONS = ("kernel-smith", "torch", "transformers", "trl", "peft", "accelerate")


class Folder:
    """A training's folder. Refuses one that belongs to something else."""

    def __init__(self, kind: Kind, settings: TrainingSettings, data: str) -> None:
        self.path = settings.output
        self._settings = settings
        self._info: dict[str, Any] = {
            "kind": kind,
            "settings": settings.model_dump(mode="json"),
            "data_sha256": data,
            "versions": _versions(),
        }

    @property
    def final(self) -> Path:
        return self.path / "final"

    def open(self) -> Path | None:
        """Creates it, or finds the checkpoint to go on from; None: begin at the beginning."""
        before = self._before()
        if before is None:
            if self.path.is_dir() and any(
                not path.name.startswith(".") for path in self.path.iterdir()
            ):
                raise BadInput(
                    f"{self.path} is not empty, and no training wrote it",
                    hint="give a new folder with --output",
                )
            self._create()
            return None
        checkpoint = self.last_checkpoint()
        if checkpoint is not None:
            self._check_same(before)
        return checkpoint

    def last_checkpoint(self) -> Path | None:
        """The newest that was written to its end: the trainer's state comes last."""
        found = [
            (int(match[1]), path)
            for path in (self.path.iterdir() if self.path.is_dir() else ())
            if (match := _CHECKPOINT.fullmatch(path.name))
            and (path / "trainer_state.json").is_file()
        ]
        return max(found)[1] if found else None

    def note(self, state: State, **more: Any) -> dict[str, Any]:
        """Writes down where the training stands; a reader sees the old state or the new one."""
        info = {**self._info, "state": state, **more}
        partial = self.path / f".{_INFO}"
        partial.write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
        os.replace(partial, self.path / _INFO)
        return info

    def copy_info_to_final(self) -> None:
        shutil.copy(self.path / _INFO, self.final / _INFO)

    def _before(self) -> dict[str, Any] | None:
        path = self.path / _INFO
        if not path.is_file():
            return None
        try:
            info: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            hint = "remove the folder, or give a new one with --output"
            raise BadInput(f"{path} cannot be read: {error}", hint=hint) from None
        return info

    def _create(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            hint = "give another folder with --output"
            raise BadInput(f"{self.path} cannot be made: {error.strerror}", hint=hint) from None

    def _check_same(self, before: dict[str, Any]) -> None:
        hint = f"give a new --output, or remove {self.path} to begin anew"
        if before.get("kind") != self._info["kind"]:
            raise BadInput(f"{self.path} is of another kind of training", hint=hint)
        if before.get("data_sha256") != self._info["data_sha256"]:
            raise BadInput(f"{self.path} was begun with other data", hint=hint)
        old, new = before.get("settings", {}), self._info["settings"]
        changed = sorted(
            name
            for name in old.keys() | new.keys()
            if name not in MAY_CHANGE | {"data"} and old.get(name) != new.get(name)
        )
        if changed:
            what = "; ".join(f"{name} was {old.get(name)}, is {new.get(name)}" for name in changed)
            raise BadInput(f"{self.path} was begun with other settings: {what}", hint=hint)


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
