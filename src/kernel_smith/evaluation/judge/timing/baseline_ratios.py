"""How baselines compare with eager PyTorch: measured once per task, device and version, then kept.

On a GPU a candidate is timed beside eager alone. Against any other baseline it is compared through
eager, whose ratio to that baseline comes from here, with its uncertainty. On a CPU all baselines
are timed beside the candidate, and their ratios are kept for those who want to know what is to be
beaten.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from pathlib import Path

import torch

import kernel_smith
from kernel_smith.evaluation.judge.timing.host_clock import Measurement
from kernel_smith.evaluation.judge.timing.outcome import Against
from kernel_smith.evaluation.judge.timing.statistics import LogRatio, distribution, estimate
from kernel_smith.inline.cache import cache_root, keep_text
from kernel_smith.records import (
    Baseline,
    Device,
    Distribution,
    KnownBaseline,
    Task,
    Workload,
    content_hash,
)
from kernel_smith.records.base import Record

EAGER: Baseline = "eager"
GRAPH: Baseline = "graph"


class Ratio(Record):
    """A `LogRatio` as it is kept."""

    mean: float
    error: float
    freedom: float

    @classmethod
    def of(cls, ratio: LogRatio) -> Ratio:
        return cls(mean=ratio.mean, error=ratio.error, freedom=ratio.freedom)

    def log_ratio(self) -> LogRatio:
        return LogRatio(self.mean, self.error, self.freedom)


class BaselineRatio(Record):
    """One baseline on one workload: the time of eager over its own."""

    ratio: Ratio
    plain: Ratio | None
    seconds: Distribution


class BaselineRatios:
    """`place`: the device, or the processor and its cores in words."""

    def __init__(self, task: Task, place: Device | str, root: Path | None = None) -> None:
        self._workloads = task.workloads
        self._folder = (root or cache_root()) / "baselines"
        self._versions = (
            task.content_hash,
            place if isinstance(place, str) else place.model_dump_json(),
            torch.__version__,
            kernel_smith.__version__,
        )

    def get(self, workload: Workload, baseline: str) -> BaselineRatio | None:
        with contextlib.suppress(OSError, ValueError):
            return BaselineRatio.model_validate_json(self._path(workload, baseline).read_text())
        return None

    def put(self, workload: Workload, baseline: str, ratio: BaselineRatio) -> None:
        keep_text(self._path(workload, baseline), ratio.model_dump_json())

    def known(self, names: Iterable[str]) -> tuple[KnownBaseline, ...]:
        """Those of the baselines that are known on all workloads."""
        found = []
        for name in names:
            ratios = [self.get(workload, name) for workload in self._workloads]
            weights = [workload.weight for workload in self._workloads]
            means = [known.ratio.mean for known in ratios if known is not None]
            if len(means) == len(ratios):
                mean = sum(w * m for w, m in zip(weights, means, strict=True)) / sum(weights)
                found.append(KnownBaseline(baseline=name, ratio=math.exp(mean)))
        return tuple(found)

    def _path(self, workload: Workload, baseline: str) -> Path:
        key = content_hash(*self._versions, workload.model_dump_json(), baseline)
        return self._folder / key[:2] / f"{key}.json"


def ratio_of_contest(
    baseline: str, replayed: Measurement, plain: Measurement | None
) -> BaselineRatio:
    """From a contest of the baseline against eager."""
    return BaselineRatio(
        ratio=Ratio.of(replayed.log_ratio(EAGER, baseline)),
        plain=None if plain is None else Ratio.of(plain.log_ratio(EAGER, baseline)),
        seconds=distribution(replayed.samples[baseline].seconds),
    )


def through_eager(direct: Against, known: BaselineRatio) -> Against:
    """The candidate against a baseline, from both against eager."""
    plain = None
    if direct.plain is not None and known.plain is not None:
        plain = _difference(direct.plain, known.plain.log_ratio())
    return Against(_difference(direct.ratio, known.ratio.log_ratio()), known.seconds, plain)


def against_graph(direct: Against, replayed: Measurement, plain: Measurement) -> Against:
    """Eager as a CUDA graph is what a replay of eager is; a plain call of the candidate's is held
    against that, too."""
    name = next(iter(plain.samples))
    pairs = zip(replayed.samples[EAGER].seconds, plain.samples[name].seconds, strict=False)
    ratio = estimate([math.log(graph / call) for graph, call in pairs])
    return Against(direct.ratio, direct.seconds, ratio)


def _difference(left: LogRatio, right: LogRatio) -> LogRatio:
    error = math.hypot(left.error, right.error)
    return LogRatio(left.mean - right.mean, error, min(left.freedom, right.freedom))
