"""Follows a trainer: numbers to the journal, a line to whoever waits, curves now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from kernel_smith.training.curves import draw_curves
from kernel_smith.training.journal import Journal

_LEARNING = ("loss", "eval_loss", "best_loss", "reward", "eval_reward", "best_reward")
_SHOWN = (*_LEARNING, "parsed", "correct", "faster", "cheating", "unknown")
_PAUSE = 60.0  # seconds between pictures; small steps would take less time than a picture of them


class Watch(TrainerCallback):  # type: ignore[misc]
    def __init__(self, journal: Journal, folder: Path, report: Callable[[str], None]) -> None:
        self._journal = journal
        self._folder = folder
        self._report = report
        self._drawn = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if not state.is_world_process_zero or not logs:
            return
        self._journal.metrics(state.global_step, logs)
        shown = [
            f"{name} {logs[name]:.4g}" for name in _SHOWN if isinstance(logs.get(name), int | float)
        ]
        if shown:
            self._report(f"step {state.global_step} of {state.max_steps}: {', '.join(shown)}")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero and time.monotonic() - self._drawn >= _PAUSE:
            self._drawn = time.monotonic()
            draw_curves(self._journal.read_metrics(), self._folder / "curves.png")
