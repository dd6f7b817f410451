"""What a proposer is given: everything a run knows that could help with the next change."""

from __future__ import annotations

import random

from kernel_smith.records import Beginning, Elite, Request
from kernel_smith.runs.hardware import describe_hardware
from kernel_smith.runs.state import NO_PARENT, RunState


def request_for(
    state: RunState, parent: Elite, rng: random.Random, island: int | None = None
) -> Request:
    return Request(
        task=state.task,
        parent=parent,
        exemplars=state.archive.exemplars(parent, state.config.exemplars, rng, island),
        failures=state.failures_of(parent.candidate.content_hash),
        lessons=state.lessons.told(),
        hardware=describe_hardware(parent.evaluation),
        seed=rng.getrandbits(32),
    )


def beginning_of(state: RunState, rng: random.Random) -> Beginning:
    """For a run without a program: what was tried tells about the machine, too."""
    tried = [step.evaluation for step in state.steps.values() if step.evaluation is not None]
    return Beginning(
        task=state.task,
        backend=state.config.backend,
        failures=state.failures_of(NO_PARENT),
        hardware=describe_hardware(tried[-1]) if tried else "",
        seed=rng.getrandbits(32),
    )
