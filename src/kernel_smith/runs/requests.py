"""What a worker is given: what the method asks for, and what the run knows of the machine."""

from __future__ import annotations

from kernel_smith.records import Request
from kernel_smith.runs.hardware import describe_hardware
from kernel_smith.runs.state import RunState
from kernel_smith.search.base import Ask


def request_of(state: RunState, ask: Ask, seed: int) -> Request:
    parent = state.evaluated[ask.parent] if ask.parent is not None else None
    return Request(
        task=state.task,
        backend=state.config.backend,
        parent=parent,
        context=ask.context,
        hardware=_hardware(state) if parent is None else describe_hardware(parent.evaluation),
        seed=seed,
    )


def _hardware(state: RunState) -> str:
    """What was tried without success tells about the machine, too."""
    tried = [step.evaluation for step in state.steps.values() if step.evaluation is not None]
    return describe_hardware(tried[-1]) if tried else ""
