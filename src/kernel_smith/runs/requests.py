"""What a worker is given: what the method asks for, and what the run knows of the machine."""

from __future__ import annotations

from kernel_smith.records import Request
from kernel_smith.runs.hardware import describe_hardware
from kernel_smith.runs.state import RunState
from kernel_smith.search.base import Ask

_TARGETS = {
    "compile": "torch.compile is {ratio:.2f} times as fast as eager PyTorch here",
    "max-autotune": "its mode max-autotune is {ratio:.2f} times as fast",
}
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
    """Return what the framework's compiler reaches, as far as this run knows."""
    told = [
        text.format(ratio=state.baselines[name])
        for name, text in _TARGETS.items()
        if name in state.baselines
    ]
    if "compile" in state.baselines:
        slower = max(state.baselines.values()) <= 1
        rival = "eager PyTorch" if slower else "both" if told[1:] else "that"
        return f"{', '.join(told)}: be faster than {rival}."
    for name in state.seeds:
        seed = state.evaluated[name].evaluation
        if seed.ok and seed.timing is not None:
            return _SEED_TARGET.format(ratio=seed.timing.speedup.value)
    return "Eager PyTorch, and then torch.compile."


def _hardware(state: RunState) -> str:
    """What was tried without success tells about the machine, too."""
    tried = [step.evaluation for step in state.steps.values() if step.evaluation is not None]
    return describe_hardware(tried[-1]) if tried else ""
