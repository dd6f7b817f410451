"""A module that lives in a program, as a task: its source, its state, and inputs like those of
example calls."""

from kernel_smith.shipping.live.examples import Call, read_calls
from kernel_smith.shipping.live.task import live_task

__all__ = ["Call", "live_task", "read_calls"]
