"""What a run may say about its best: what measuring it at full length has shown, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_smith.records import faster_than

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
    chosen = "These measurements did not choose it."
    if not missing:
        return f"Confirmed: it is faster than {' and '.join(faster)}. {chosen}"
    return f"That it is faster than {' and '.join(missing)} is not shown. {chosen}"


def describe_confirmation(state: RunState) -> dict[str, Any]:
    """The same for machines."""
    shown = state.confirmation
    return {
        "confirmed": state.is_confirmed,
        "faster_than": [] if shown is None else list(faster_than(shown)),
        "unconfirmed": state.unconfirmed,
    }
