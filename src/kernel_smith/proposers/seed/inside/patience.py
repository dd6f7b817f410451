"""How long the compiler may take: it unrolls loops, and may be at it for hours."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

from kernel_smith.proposers.seed.refusal import refused

_AGAIN_SECONDS = 1.0  # somebody may have caught it


class _OutOfPatience(BaseException):
    """Nothing that a compiler expects, and takes for a failure of its own."""


@contextlib.contextmanager
def at_most(minutes: float) -> Iterator[None]:
    """In the main thread: refuse the seed when the time is over."""

    over = False

    def stop(*_: Any) -> None:
        nonlocal over
        over = True
        raise _OutOfPatience

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes, _AGAIN_SECONDS)
    try:
        yield
    except BaseException:  # or whatever somebody made of ours
        if not over:
            raise
        raise refused(
            f"torch.compile needs more than {minutes:g} minutes",
            hint="give kernel-smith seed more --patience, or one --workload",
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
