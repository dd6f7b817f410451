"""What a run may say about its best: what measuring it at full length has shown, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_smith.records import faster_than
from kernel_smith.records.prose import spoken

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState


def confirmation_in_words(state: RunState) -> str:
    """One sentence or two."""
    shown = state.confirmation
    if shown is None:
        why = state.unconfirmed or "the search was not over"
        return f"That it is faster is not shown: it was not measured at full length ({why})."
    asked = state.config.confirmation.baselines
    faster = faster_than(shown)
    missing = [name for name in asked if name not in faster]
    again = "This was measured once more, after the search."
    if not missing:
        return f"Confirmed: it is faster than {' and '.join(map(spoken, faster))}. {again}"
    return f"That it is faster than {' and '.join(map(spoken, missing))} is not shown. {again}"


def advice(state: RunState, path: Path) -> str:
    """Return what to do now, in a line: use the kernel, or keep PyTorch, and by how much."""
    shown = state.confirmation
    if shown is None or shown.timing is None:
        return "Keep PyTorch for now: that the kernel is faster is not shown."
    against = {each.baseline: each.speedup for each in shown.timing.speedups}
    factors = " and ".join(
        f"{speedup.value:.2f} times as fast as {_name(name)}" for name, speedup in against.items()
    )
    if all(speedup.low > 1 for speedup in against.values()):
        return f"Use it: {path} is {factors}."
    best = min(against, key=lambda name: against[name].value)
    if against[best].high < 1:
        return f"Keep {_name(best)}: it is {1 / against[best].value:.2f} times as fast as {path}."
    return f"Keep {_name(best)} for now: {path} is {factors}, and that is not certain enough."


def _name(baseline: str) -> str:
    return "eager PyTorch" if baseline == "eager" else spoken(baseline)


def describe_confirmation(state: RunState) -> dict[str, Any]:
    """The same for machines."""
    shown = state.confirmation
    return {
        "confirmed": state.is_confirmed,
        "faster_than": [] if shown is None else list(faster_than(shown)),
        "unconfirmed": state.unconfirmed,
    }
