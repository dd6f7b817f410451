"""Rounds on a GPU in which somebody had to wait for a core: set aside, or doubted."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_smith.evaluation.judge.platform.batch import Batch, Windows
from kernel_smith.evaluation.judge.timing import device_clock
from kernel_smith.evaluation.judge.timing.device_clock import Contest, measure
from kernel_smith.evaluation.judge.timing.host_clock import Measurement
from kernel_smith.evaluation.judge.timing.interruptions import Interruptions
from kernel_smith.records import Sampling

EAGER, OURS = 30e-6, 10e-6  # seconds per call
ASKING, WAIT = 4e-5, 3e-3
SAMPLING = Sampling(max_seconds=0.2)


@dataclass
class Machine:
    """Stands in for a contest on a GPU. `waits`: who has to wait for a core, and for how long."""

    waits: Callable[[int, str, int], float]
    length: int = 100
    turn: int = 0
    shortened: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.candidate = SimpleNamespace(name="candidate", device_seconds=lambda: OURS)
        self._eager = SimpleNamespace(name="eager")
        self.bench = SimpleNamespace(eager=lambda: self._eager)
        self.everyone = [self.candidate, self._eager]
        self._draw = random.Random(7)

    def round(
        self, way: str, most: int | None, *, watched: bool = False, timed: bool = True
    ) -> dict[str, Batch]:
        self.turn += 1
        return {"candidate": self._batch("candidate", OURS), "eager": self._batch("eager", EAGER)}

    def _batch(self, name: str, seconds: float) -> Batch:
        waited = self.waits(self.turn, name, self.length)
        noise = self._draw.uniform(0, 1e-6)
        wall = ASKING + self.length * seconds + waited + noise
        windows = Windows(wall, wall, 0.0, 0.0, 4e-4 + noise, waited)
        return Batch(self.length, windows, None, [], seconds)

    def shorten(self) -> bool:
        self.length //= 3
        self.shortened.append(self.length)
        return True


def measured(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Measurement:
    monkeypatch.setattr(device_clock, "empty_batch", lambda participant, others: ASKING)
    return measure(cast(Contest, machine), SAMPLING, "replay")


def ratio(measurement: Measurement) -> tuple[float, float]:
    found = measurement.log_ratio("eager", "candidate").interval()
    return found.value, found.half_width


def test_a_quiet_machine_sets_nothing_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(lambda turn, name, length: 0.0)
    value, width = ratio(measured(monkeypatch, machine))
    assert value == pytest.approx(EAGER / OURS, rel=0.01) and width < 0.02
    assert not machine.shortened


def test_rounds_with_an_interruption_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    machine = Machine(lambda turn, name, length: WAIT * (draw.random() < 0.3))
    value, width = ratio(measured(monkeypatch, machine))
    assert value == pytest.approx(EAGER / OURS, rel=0.01) and width < 0.02


def test_batches_become_shorter_where_most_are_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(lambda turn, name, length: WAIT if length > 20 else 0.0)
    value, _ = ratio(measured(monkeypatch, machine))
    assert value == pytest.approx(EAGER / OURS, rel=0.02)
    assert machine.shortened == [33, 11]


def test_where_all_are_interrupted_the_ratio_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "shorten", lambda self: False)
    value, width = ratio(measured(monkeypatch, Machine(lambda *_: WAIT)))
    low, high = value / math.exp(2 * width), value * math.exp(2 * width)
    assert value < 0.6 * EAGER / OURS  # which is far off, and says so
    assert low < EAGER / OURS < high


def test_a_candidate_cannot_choose_its_rounds() -> None:
    def batch(waited: float) -> Any:
        return SimpleNamespace(windows=Windows(1e-3, 0.0, 0.0, 0.0, waited=waited))

    interruptions = Interruptions("candidate")
    alone = {"candidate": batch(WAIT), "eager": batch(0.0)}
    asides = [interruptions.sets_aside(alone) for _ in range(20)]
    assert sum(asides) == 3 and not asides[-1]
    assert interruptions.sets_aside({"candidate": batch(0.0), "eager": batch(WAIT)})
    assert interruptions.sets_aside(alone) and not interruptions.sets_aside(alone)
