"""Which waiting job goes to which device of a cluster next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.engines.pool import LONGEST_LOOK, TASKS_KEPT_READY
from kernel_smith.evaluation.engines.ray_cluster import Place
from kernel_smith.records import Candidate, Evaluation, Options, Task


@dataclass(eq=False)
class Asked:
    """A request, and who waits for its answer."""

    task: Task
    candidate: Candidate
    options: Options
    beside: Candidate | None
    future: Future[Evaluation] = field(default_factory=Future)
    times: int = 0
    stranded_at: float | None = None  # since when there is no device that could do it
    task_hash: str = field(init=False)
    wants_gpu: bool = field(init=False)

    def __post_init__(self) -> None:
        self.task_hash = self.task.content_hash
        self.wants_gpu = _is_for_gpu(self.candidate) and not self.options.interpret

    @property
    def begun(self) -> bool:
        """It was sent before, so it cannot be cancelled any more."""
        return self.times > 0


@dataclass(eq=False)
class Device:
    place: Place
    actor: Any
    lanes: int = 0  # until its actor has answered
    running: set[Asked] = field(default_factory=set)
    ready: deque[str] = field(default_factory=lambda: deque(maxlen=TASKS_KEPT_READY))

    @property
    def has_room(self) -> bool:
        return len(self.running) < self.lanes

    def note_use(self, task: str) -> None:
        """The judges keep what was used last, so the order is that of use."""
        if task in self.ready:
            self.ready.remove(task)
        self.ready.append(task)


def next_match(
    waiting: deque[Asked], devices: Iterable[Device], gpus_exist: bool
) -> tuple[Asked, Device] | None:
    """Idle devices come first, then those with a free lane. Among equals a device that has the
    job's task ready is preferred, and whoever needs no GPU leaves them to others."""
    free = sorted((device for device in devices if device.has_room), key=_preference)
    for idle in (True, False):
        equals = [device for device in free if bool(device.running) is not idle]
        found = _first_ready(waiting, equals, gpus_exist) or _first(waiting, equals, gpus_exist)
        if found is not None:
            return found
    return None


def can_do(asked: Asked, gpu: bool, gpus_exist: bool) -> bool:
    """Without any GPU in the cluster its kernels are interpreted, as on a machine without one."""
    return gpu or not (gpus_exist and asked.wants_gpu)


def _preference(device: Device) -> tuple[int, bool]:
    return len(device.running), device.place.gpu


def _first_ready(
    waiting: deque[Asked], devices: list[Device], gpus_exist: bool
) -> tuple[Asked, Device] | None:
    having = {task: device for device in reversed(devices) for task in device.ready}
    for asked in islice(waiting, LONGEST_LOOK):
        device = having.get(asked.task_hash)
        if device is not None and can_do(asked, device.place.gpu, gpus_exist):
            return asked, device
    return None


def _first(
    waiting: deque[Asked], devices: list[Device], gpus_exist: bool
) -> tuple[Asked, Device] | None:
    """Looks at all that wait: what needs a GPU must not keep the others from devices without."""
    for gpu in (False, True):
        device = next((device for device in devices if device.place.gpu is gpu), None)
        if device is not None:
            for asked in waiting:
                if can_do(asked, gpu, gpus_exist):
                    return asked, device
    return None


def _is_for_gpu(candidate: Candidate) -> bool:
    try:
        return find_backend(candidate.backend).gpu
    except BadInput:
        return False  # any judge can say so
