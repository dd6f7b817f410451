"""A device that nobody else uses, with a cold cache.

A candidate's process may leave a kernel running when it is not its turn, to get ahead or to slow
the reference down. Two processes share a GPU by turns of milliseconds, so the judge notices: what
takes it microseconds on an idle device takes far longer then.
"""

from __future__ import annotations

import statistics
import time

import torch

from kernel_smith.evaluation.judge.platform.result_watch import Looks
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.sandbox.device_memory import forget_persisting_lines
from kernel_smith.records import Reason

_TIMES_THE_CACHE = 2
_SMALL_KERNELS = 8
_PROBES = 3
_BUSY_SECONDS = 4e-4  # a turn of another process takes 2 ms, the probe 17 us
_MOST_BUSY = 0.25


class Quiet:
    def __init__(self) -> None:
        l2 = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        self._larger_than_cache = torch.empty(
            max(_TIMES_THE_CACHE * l2, 1), dtype=torch.uint8, device="cuda"
        )
        self._small = torch.zeros(1024, device="cuda")
        self._probe = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._probe):
            for _ in range(_SMALL_KERNELS):
                self._small.add_(1)

    def make_cold(self) -> None:
        """Fill the whole cache with something else, reserved parts of it included."""
        forget_persisting_lines()
        self._larger_than_cache.zero_()
        torch.cuda.synchronize()

    def is_busy(self) -> bool:
        """Does another process use the device right now?"""
        return statistics.median(self._probe_once() for _ in range(_PROBES)) > _BUSY_SECONDS

    def _probe_once(self) -> float:
        before = time.perf_counter()
        self._probe.replay()
        torch.cuda.synchronize()
        return time.perf_counter() - before


def check_joined(refusal: str) -> None:
    """Raise `Rejected` where a capture failed because of work on a stream that nobody waits for.

    Here a call waits for the whole device. In production its results would be read too early.
    """
    if "cudaErrorStreamCaptureUnjoined" in refusal:
        raise Rejected(
            Reason.DEFERRED_WORK,
            "a call leaves work on a stream of its own that the caller's stream does not wait for",
        )


def check_idle(looks: list[bool]) -> None:
    """Raise `Rejected` if the device was busy at many of the moments when nobody was to use it."""
    busy = sum(looks)
    if busy > _MOST_BUSY * len(looks):
        raise Rejected(
            Reason.BACKGROUND_WORK,
            f"the GPU was busy at {busy} of {len(looks)} moments when it was nobody's turn",
        )


def check_one_by_one(looks: Looks) -> None:
    """Raise `Rejected` where calls were begun before they were asked for, or computed together.

    A batch holds many calls so that they can be timed, and nobody who uses a kernel has as many to
    offer: what is saved by knowing several of them is no gain.
    """
    early = looks.begun_early()
    if early is not None:
        raise Rejected(
            Reason.BACKGROUND_WORK,
            f"call {early} of a batch had a result before the batch was asked for",
        )
    together = looks.computed_together()
    if together is not None:
        first, second = together
        raise Rejected(
            Reason.DEFERRED_WORK,
            f"call {second} of a batch was complete when call {first} was not",
        )
