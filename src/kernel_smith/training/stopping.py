"""Ctrl-C: a training ends after the step that is under way, with a checkpoint of it.

In the midst of a step the weights belong to no step, so whoever stopped there would lose all that
came after the last checkpoint. The second Ctrl-C does not wait.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from transformers import TrainerCallback


class Stopping(TrainerCallback):  # type: ignore[misc]
    def __init__(self, report: Callable[[str], None], *, alone: bool) -> None:
        self.asked = False
        self._alone = alone  # several processes would not end after the same step
        self._report = report
        self._handler_before: Any = None

    def __enter__(self) -> Stopping:
        if self._alone and threading.current_thread() is threading.main_thread():
            self._handler_before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._handler_before is not None:
            signal.signal(signal.SIGINT, self._handler_before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, self._handler_before)
        self._report("ending after this step (Ctrl-C again: at once, without it)")

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.asked:
            control.should_evaluate = False
            control.should_save = control.should_training_stop = True
