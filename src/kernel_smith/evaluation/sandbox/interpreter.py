"""Triton's interpreter in a candidate's process: kernels run on the tensors of the CPU."""

from __future__ import annotations

import os


def interpret_kernels(*, disarmed: bool) -> None:
    """Have every kernel that is defined from now on interpreted, or (`disarmed`) do nothing."""
    os.environ["TRITON_INTERPRET"] = "1"
    if disarmed:
        from triton.runtime.interpreter import GridExecutor

        GridExecutor.__call__ = lambda self, *args, **kwargs: None
