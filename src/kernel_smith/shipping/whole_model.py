"""How much faster a whole model gets with a kernel in it: as it is called, and as a CUDA graph.

What a kernel gains by itself says little about a program. One that starts operation by operation
may spend more time on starting them than the GPU spends on computing; and a kernel of several
launches is started from Python, where PyTorch's own operations are started from C++.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.platform.device_lock import lock_of_device
from kernel_smith.evaluation.judge.timing.statistics import estimate
from kernel_smith.records import Interval
from kernel_smith.shipping.runtime.replacement import Replacement

FEWEST_ROUNDS, MOST_ROUNDS = 20, 60
_WARM_UP = 3

Call = Callable[[], Any]


@dataclass(frozen=True)
class BeforeAndAfter:
    """Medians of a call's seconds, and the ratio of the two."""

    before: float
    after: float
    speedup: Interval

    def __str__(self) -> str:
        ratio = self.speedup
        return (
            f"{1e3 * self.before:.2f} ms before, {1e3 * self.after:.2f} ms after: "
            f"{ratio.value:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}]"
        )


@dataclass(frozen=True)
class ModelGain:
    """What a kernel is worth in a model."""

    replaced: list[str]
    """The modules that it stood in for."""
    called: BeforeAndAfter
    captured: BeforeAndAfter | None
    """The same calls replayed as CUDA graphs, as engines for inference do it."""
    why_not_captured: str = ""

    def __str__(self) -> str:
        second = self.why_not_captured if self.captured is None else str(self.captured)
        return f"as called:     {self.called}\nas CUDA graph: {second}"


class ModelGauge:
    """Calls a model with a kernel and without it in turn."""

    def __init__(
        self, kernel: Replacement, model: torch.nn.Module, where: type | None, call: Call
    ) -> None:
        self._kernel = kernel
        self._model = model
        self._where = where
        self._call = call
        self._on_gpu = kernel.device.type == "cuda"

    def measure(self, seconds: float) -> ModelGain:
        """Measure for so many seconds each way, and leave the model as it was, patched or not."""
        was_patched = self._kernel.unpatch(self._model)
        try:
            with self._patched() as replaced:
                if not replaced:
                    raise BadInput(
                        f"no module of {type(self._model).__name__} is one that the kernel is for",
                        hint="name the class whose modules compute the same: where=MyNorm",
                    )
            with torch.no_grad(), _alone(self._on_gpu):
                called = self._as_called(seconds)
                captured, why_not = self._captured(seconds)
        finally:
            if was_patched:
                self._kernel.patch(self._model, self._where)
        return ModelGain(replaced, called, captured, why_not)

    @contextlib.contextmanager
    def _patched(self) -> Iterator[list[str]]:
        replaced = self._kernel.patch(self._model, self._where)
        try:
            yield replaced
        finally:
            self._kernel.unpatch(self._model)

    def _as_called(self, seconds: float) -> BeforeAndAfter:
        def before() -> float:
            self._call()  # the first call after a change is not timed
            return self._timed(self._call)

        def after() -> float:
            with self._patched():
                return before()

        return _in_turn(before, after, seconds)

    def _captured(self, seconds: float) -> tuple[BeforeAndAfter | None, str]:
        """Measure the same calls as CUDA graphs; return None and the reason where there is none."""
        if not self._on_gpu:
            return None, "the model is not on a GPU"
        try:
            _refuse_waiting(self._call)
            before = _capture(self._call)
            with self._patched():
                after = _capture(self._call)
        except RuntimeError as error:
            return None, f"the model cannot be captured: {str(error).splitlines()[0]}"
        turns = (lambda: self._timed(before.replay)), (lambda: self._timed(after.replay))
        return _in_turn(*turns, seconds), ""

    def _timed(self, call: Call) -> float:
        self._settle()
        begun = time.perf_counter()
        call()
        self._settle()
        return time.perf_counter() - begun

    def _settle(self) -> None:
        if self._on_gpu:
            torch.cuda.synchronize()


def _refuse_waiting(call: Call) -> None:
    """Raise `RuntimeError` where something waits for the GPU, to read from it, say: no graph holds
    that. To find out by capturing would leave the process's random numbers unusable."""
    usual = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prototype, it says
        torch.cuda.set_sync_debug_mode("error")
        try:
            call()
        finally:
            torch.cuda.set_sync_debug_mode(usual)


def _capture(call: Call) -> torch.cuda.CUDAGraph:
    """Capture a call, after some on another stream in which libraries and kernels get ready."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    graph.replay()
    return graph


def _in_turn(
    before: Callable[[], float], after: Callable[[], float], seconds: float
) -> BeforeAndAfter:
    rounds: list[tuple[float, float]] = []
    begun = time.perf_counter()
    while len(rounds) < MOST_ROUNDS and (
        len(rounds) < FEWEST_ROUNDS or time.perf_counter() - begun < seconds
    ):
        rounds.append((before(), after()))
    ratio = estimate([math.log(one / other) for one, other in rounds]).interval()
    middle = [statistics.median(column) for column in zip(*rounds, strict=True)]
    return BeforeAndAfter(middle[0], middle[1], ratio)


@contextlib.contextmanager
def _alone(on_gpu: bool) -> Iterator[None]:
    """Wait until nobody else times on the GPU, or prepares to; then keep others out."""
    with contextlib.closing(lock_of_device()) as lock:
        if on_gpu:
            lock.acquire_among_sharers()
        yield
