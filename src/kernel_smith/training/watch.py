"""Follows a trainer: numbers to the journal, a line to whoever waits, curves at each checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from kernel_smith.training.curves import draw_curves
from kernel_smith.training.journal import Journal

_LEARNING = ("loss", "eval_loss", "best_loss", "reward", "eval_reward", "best_reward")
_SHOWN = (*_LEARNING, "parsed", "correct", "faster", "cheating", "unknown")


class Watch(TrainerCallback):  # type: ignore[misc]
    def __init__(self, journal: Journal, folder: Path, report: Callable[[str], None]) -> None:
        self._journal = journal
        self._folder = folder
        self._report = report

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
        if state.is_world_process_zero:
            draw_curves(self._journal.read_metrics(), self._folder / "curves.png")
