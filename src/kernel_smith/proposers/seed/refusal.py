"""How a seed is refused: with the reason, and with what can be done about it."""

from __future__ import annotations

from kernel_smith.errors import BadInput

_START = "start from a kernel of your own; see docs/candidate-format.md"


def refused(why: str, hint: str = _START) -> BadInput:
    return BadInput(f"no seed: {why}", hint=hint)


def ends_process(how: str) -> BadInput:
    why = f"the task's code ends the process ({how})"
    return refused(why, hint="have it return, or raise an error")
