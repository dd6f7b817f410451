"""Can a problem be judged at all? Found out before anybody works on it.

The judge is given a program that does not even compile. What becomes of that program is no news;
but before it gets there the judge makes the problem ready, and says what is wrong with it. That
works with every engine, and what was made ready is used by the programs that follow.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import NamedTuple

from kernel_smith.errors import BadInput, NotAdmitted, NotEnoughMemory, TookTooLong, UserError
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Candidate, Options, Task, Unfit

_COMPILED = """import torch

from kernel_smith.inline import {backend}

kernels = {backend}("#error this program is only here to have the problem looked at")


class ModelNew(torch.nn.Module):
    def forward(self, *inputs):
        return kernels.nothing(*inputs)
"""
_TRITON = """import torch
import triton


@triton.jit
def nothing(x):
    pass


class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        raise RuntimeError("this program is only here to have the problem looked at")

    def forward(self, *inputs):
        nothing[(1,)](inputs[0])
"""
_INLINE = ("cpp", "cuda", "maca", "hip")


class Unfitness(NamedTuple):
    kind: Unfit
    why: str


class Examiner:
    """Looks at each problem once, however many arms work on it. Safe to use from threads."""

    def __init__(self, engine: Evaluator, options: Options) -> None:
        self._engine = engine
        self._options = options
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._found: dict[str, Unfitness | None] = {}

    def look_at(self, task: Task, backend: str) -> Unfitness | None:
        """Why the problem cannot be judged; None where it can."""
        with self._locks[task.content_hash]:
            if task.content_hash not in self._found:
                self._found[task.content_hash] = self._ask(task, backend)
            return self._found[task.content_hash]

    def _ask(self, task: Task, backend: str) -> Unfitness | None:
        program = _program(backend)
        if program is None:
            return None
        try:
            self._engine.submit(task, program, self._options).result()
        except UserError as error:
            kind = unfit(error)
            if kind is None:
                raise
            return Unfitness(kind, error.what)
        return None


def unfit(error: UserError) -> Unfit | None:
    """Return what an error of the judge's says about the problem; None: nothing, it is the
    machine's."""
    if isinstance(error, NotEnoughMemory):
        return "too-large"
    if isinstance(error, TookTooLong):
        return "hung"
    if isinstance(error, NotAdmitted):
        return "refused"
    return "broken" if isinstance(error, BadInput) else None


def _program(backend: str) -> Candidate | None:
    """None for backends of other packages: their first program shows the same, later."""
    if backend in _INLINE:
        source = _COMPILED.format(backend=backend)
    elif backend == "triton":
        source = _TRITON
    else:
        return None
    return Candidate(backend=backend, source=source, name="first_look.py")
