"""What a worker is given: what the method asks for, and what the run knows of the machine."""

from __future__ import annotations

from kernel_smith.records import Evaluation, Request
from kernel_smith.runs.hardware import describe_hardware
from kernel_smith.runs.state import RunState
from kernel_smith.search.base import Ask

_TARGET = "torch.compile is {ratio:.2f} times as fast as eager PyTorch here: be faster than that."
_SEED_TARGET = (
    "What torch.compile writes, as a program of this run, is {ratio:.2f} times as fast as eager "
    "PyTorch: be faster than that."
)


def request_of(state: RunState, ask: Ask, seed: int) -> Request:
    parent = state.evaluated[ask.parent] if ask.parent is not None else None
    return Request(
        task=state.task,
        backend=state.config.backend,
        parent=parent,
        context=ask.context,
        hardware=_hardware(state) if parent is None else describe_hardware(parent.evaluation),
        target=target_of(state),
        seed=seed,
    )


def target_of(state: RunState) -> str:
    """What the framework's compiler reaches, as far as this run knows."""
    for shown in (found[-1] for found in state.confirmations.values()):
        ratio = _compiled_ratio(shown)
        if ratio is not None:
            return _TARGET.format(ratio=ratio)
    for name in state.seeds:
        seed = state.evaluated[name].evaluation
        if seed.ok and seed.timing is not None:
            return _SEED_TARGET.format(ratio=seed.timing.speedup.value)
    return "Eager PyTorch, and then torch.compile."


def _compiled_ratio(shown: Evaluation) -> float | None:
    """How many times as fast as eager torch.compile is, from a program timed against both."""
    if shown.timing is None:
        return None
    speedups = {each.baseline: each.speedup.value for each in shown.timing.speedups}
    if "eager" not in speedups or not speedups.get("compile"):
        return None
    return speedups["eager"] / speedups["compile"]


def _hardware(state: RunState) -> str:
    """What was tried without success tells about the machine, too."""
    tried = [step.evaluation for step in state.steps.values() if step.evaluation is not None]
    return describe_hardware(tried[-1]) if tried else ""
