"""Evaluations on the devices of a Ray cluster, as if by a pool on this machine.

One actor per device, with judges of its own beside it. A device gets as many jobs as it has lanes
and no more, so nobody waits behind one of them while another is idle. What a device that dies was
doing is sent elsewhere, a few times at most; nodes that join are used. One thread keeps the books.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from kernel_smith.closing import ClosingInAHurry
from kernel_smith.errors import InternalError, MissingPrerequisite
from kernel_smith.evaluation.engines.ray_actor import Told, read_answer
from kernel_smith.evaluation.engines.ray_cluster import (
    Connection,
    Place,
    check_connection,
    occupy,
    places,
    why_unfit,
)
from kernel_smith.evaluation.engines.ray_queue import Asked, Device, can_do, next_match
from kernel_smith.records import Candidate, Evaluation, Options, Task

_LOG = logging.getLogger(__name__)

_ATTEMPTS = 3
_LOOK_SECONDS = 1.0
_UNFIT_SECONDS = 30.0  # until a node that could not evaluate is tried again
_FIRST_DEVICE_SECONDS = 60.0
_CLOSE_SECONDS = 20.0
_HURRY_SECONDS = 5.0


class RayEngine(ClosingInAHurry):
    """`with RayEngine("ray") as engine: future = engine.submit(task, candidate)`.

    `lanes`: of each device. `device`: use only nodes with this accelerator type or custom resource.
    `on_node`: the address of the engine that each actor opens on its node; None: a pool of judges.
    `patience`: for how many seconds a job waits for a device when none is left that could do it.
    """

    def __init__(
        self,
        address: str = "ray",
        *,
        lanes: int = 1,
        device: str | None = None,
        on_node: str | None = None,
        patience: float = 300.0,
    ) -> None:
        self._lanes, self._kind, self._on_node = lanes, device, on_node
        self._patience = patience
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._waiting: deque[Asked] = deque()
        self._under_way: set[Asked] = set()
        self._devices: dict[Place, Device] = {}
        self._unfit: dict[Place, tuple[float, MissingPrerequisite]] = {}
        self._gpus_exist = False
        self._looked_at = -_LOOK_SECONDS
        self._trouble: str | None = None
        self._sent_again = 0
        self._lock = threading.Lock()
        self._closed = self._closing = self._hurry = False
        self._connection = Connection(address)
        self._events.put(_nothing)  # so that it looks for devices at once
        self._thread = threading.Thread(target=self._run, name="ray engine", daemon=True)
        self._thread.start()
        try:
            self._wait_for_a_device()
        except BaseException:
            self._close(hurry=True)
            raise

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        """The evaluation, in the future. Cancelling works until it was sent to a device."""
        # Where files lie here means nothing there.
        sent = task.model_copy(update={"path": None, "starts": {}})
        asked = Asked(sent, candidate, options or Options(), beside)
        with self._lock:
            if self._closed:
                raise RuntimeError("the engine is closed")
            self._events.put(partial(self._waiting.append, asked))
        return asked.future

    def capacity(self) -> int:
        """The lanes of all devices that are there now."""
        return sum(device.lanes for device in list(self._devices.values()))

    def health(self) -> dict[str, Any]:
        devices = list(self._devices.values())
        lanes = sum(device.lanes for device in devices)
        return {
            "ready": lanes > 0 and not self._closed,
            "lanes": lanes,
            "devices": sum(device.lanes > 0 for device in devices),
            "busy": len(self._under_way),
            "waiting": len(self._waiting),
            "sent_again": self._sent_again,
            "unfit": {place.host: error.what for place, (_, error) in list(self._unfit.items())},
            "trouble": self._trouble,
        }

    def _close(self, hurry: bool) -> None:
        with self._lock:
            first, self._closed = not self._closed, True
        if first:
            self._events.put(partial(self._begin_to_close, hurry))
            self._thread.join()
            self._connection.close()

    def _wait_for_a_device(self) -> None:
        """An address or a node that is wrong is better told at once."""
        end = time.monotonic() + _FIRST_DEVICE_SECONDS
        while not self.capacity():
            if self._looked_at >= 0 and not self._devices:
                raise self._why_stranded()
            if time.monotonic() > end:
                raise MissingPrerequisite(
                    "no device of the Ray cluster became free",
                    hint="see `ray status`: others may hold its GPUs and processors",
                )
            time.sleep(0.02)

    # From here on everything runs in the engine's thread.

    def _run(self) -> None:
        while not (self._closing and self._is_finished()):
            try:
                event = self._events.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                event = _nothing
            try:
                event()
                self._look_now_and_then()
                self._send_what_can_be()
            except Exception:
                _LOG.exception("the Ray engine stumbled; it goes on")
        self._release_devices()

    def _look_now_and_then(self) -> None:
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return
        try:
            if not self._closing:
                self._look_for_devices(now)
            self._trouble = None
        # Ray raises what it likes when its connection is lost.
        except Exception as error:
            self._trouble = f"{type(error).__name__}: {error}"
        self._looked_at = now
        self._give_up_the_stranded(now)

    def _look_for_devices(self, now: float) -> None:
        found = places(self._kind)
        self._gpus_exist |= any(place.gpu for place in found)
        for place in set(self._unfit) - set(found):
            del self._unfit[place]
        for place in found:
            tried_at, _ = self._unfit.get(place, (-_UNFIT_SECONDS, None))
            if place not in self._devices and now - tried_at >= _UNFIT_SECONDS:
                device = Device(place, occupy(place, self._on_node, self._lanes))
                self._devices[place] = device
                answer = device.actor.capacity.remote().future()
                self._when_done(answer, partial(self._note_start, device))

    def _when_done(self, future: Future[Any], then: Callable[[Future[Any]], None]) -> None:
        future.add_done_callback(lambda done: self._events.put(partial(then, done)))

    def _note_start(self, device: Device, answer: Future[int]) -> None:
        error = answer.exception()
        if error is None:
            device.lanes = answer.result()
            self._unfit.pop(device.place, None)
        else:
            self._unfit[device.place] = (time.monotonic(), why_unfit(device.place, error))
            self._drop(device)

    def _drop(self, device: Device) -> None:
        """It gets no more jobs. Those that it had fail one by one, and are sent elsewhere."""
        import ray

        if self._devices.get(device.place) is device:
            del self._devices[device.place]
            with contextlib.suppress(Exception):
                check_connection()
                ray.kill(device.actor)  # perhaps it cannot be reached, but works on

    def _send_what_can_be(self) -> None:
        while self._waiting:
            match = next_match(self._waiting, self._devices.values(), self._gpus_exist)
            if match is None:
                return
            asked, device = match
            self._waiting.remove(asked)
            if asked.begun or asked.future.set_running_or_notify_cancel():
                self._send(asked, device)

    def _send(self, asked: Asked, device: Device) -> None:
        asked.times += 1
        asked.stranded_at = None
        device.running.add(asked)
        self._under_way.add(asked)
        device.note_use(asked.task_hash)
        try:
            check_connection()
            answer = device.actor.evaluate.remote(
                asked.task.model_dump_json(),
                asked.candidate.model_dump_json(),
                asked.options.model_dump_json(),
                asked.beside.model_dump_json() if asked.beside is not None else None,
            ).future()
        except Exception as error:  # the connection is lost
            answer = Future()
            answer.set_exception(error)
        self._when_done(answer, partial(self._note_end, asked, device))

    def _note_end(self, asked: Asked, device: Device, answer: Future[Told]) -> None:
        device.running.discard(asked)
        self._under_way.discard(asked)
        error = answer.exception()
        if error is None:
            self._answer(asked, answer.result())
            return
        self._drop(device)
        if asked.times >= _ATTEMPTS:
            what = f"the evaluation was lost with its device {asked.times} times ({error})"
            _fail(asked, InternalError(what))
        elif not asked.future.done():
            self._sent_again += 1
            self._waiting.appendleft(asked)

    def _answer(self, asked: Asked, told: Told) -> None:
        try:
            evaluation = read_answer(told)
            right = (asked.task_hash, asked.candidate.content_hash)
            if (evaluation.task_hash, evaluation.candidate_hash) != right:
                raise InternalError("the device answered with another candidate's evaluation")
        except Exception as error:
            _fail(asked, error)
            return
        if not asked.future.done():
            asked.future.set_result(evaluation)

    def _give_up_the_stranded(self, now: float) -> None:
        kinds = {device.place.gpu for device in self._devices.values()}
        for asked in list(self._waiting):
            if any(can_do(asked, gpu, self._gpus_exist) for gpu in kinds):
                asked.stranded_at = None
                continue
            asked.stranded_at = asked.stranded_at or now
            if self._closing or now - asked.stranded_at >= self._patience:
                self._waiting.remove(asked)
                if asked.begun or asked.future.set_running_or_notify_cancel():
                    _fail(asked, self._why_stranded())

    def _why_stranded(self) -> MissingPrerequisite:
        for _, error in list(self._unfit.values()):
            return error
        if self._trouble is not None:
            return MissingPrerequisite(
                f"the Ray cluster cannot be reached ({self._trouble})",
                hint="see `ray status`; begin again when it runs",
            )
        kind = f" with {self._kind!r}" if self._kind is not None else ""
        return MissingPrerequisite(
            f"the Ray cluster has no device{kind} that could do this",
            hint="let a node join with `ray start --address HEAD:6379`",
        )

    def _begin_to_close(self, hurry: bool) -> None:
        self._closing, self._hurry = True, hurry
        for asked in [asked for asked in self._waiting if hurry or not asked.begun]:
            self._waiting.remove(asked)
            if not asked.future.cancel():
                _fail(asked, InternalError("the engine was closed"))
        if hurry:
            for asked in self._under_way:
                _fail(asked, InternalError("the engine was closed"))
            self._under_way.clear()

    def _is_finished(self) -> bool:
        return not self._waiting and not self._under_way

    def _release_devices(self) -> None:
        """Let judges end in order; whoever takes too long is killed."""
        import ray

        patience = _HURRY_SECONDS if self._hurry else _CLOSE_SECONDS
        with contextlib.suppress(Exception):
            check_connection()
            started = [device for device in self._devices.values() if device.lanes]
            closing = [device.actor.close.remote(self._hurry) for device in started]
            if closing:
                ray.wait(closing, num_returns=len(closing), timeout=patience)
        for device in list(self._devices.values()):
            self._drop(device)


def _fail(asked: Asked, error: Exception) -> None:
    if not asked.future.done():
        asked.future.set_exception(error)


def _nothing() -> None:
    """Nothing happened for a while."""
