"""The judge's hold on a zygote: starting it, asking it for processes, replacing it when it died."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Literal

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.sandbox.wire import Channel, WireError

_START_SECONDS = 120.0


class Zygote:
    """Forks processes of one kind. A dead one is replaced."""

    def __init__(self, kind: Literal["candidates", "compilers"]) -> None:
        self._kind = kind
        # Forking overlaps with the judge's own work, so it may use every core we have.
        self._cores = sorted(os.sched_getaffinity(0))
        self._ready = False
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Channel | None = None

    @property
    def pid(self) -> int:
        self._ensure()
        assert self._process is not None
        return self._process.pid

    def begin(self) -> None:
        """Start it without waiting."""
        near, far = Channel.pair()
        environment = dict(os.environ)
        # Idle OpenMP threads give the core back at once; spinning would look like hidden work.
        environment |= {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}
        module = "kernel_smith.evaluation.sandbox"
        numbers = (far.fileno(), os.getpid(), *self._cores)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, self._kind, *map(str, numbers)],
            pass_fds=(far.fileno(),),
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        far.close()
        self._control = near
        self._ready = False

    def ask(self, job: dict[str, Any], fds: tuple[int, ...]) -> None:
        """Have a process forked. Does not wait: what came of it shows when it is to be ready."""
        for attempt in (1, 2):
            self._ensure()
            assert self._control is not None
            try:
                self._control.send(job, fds)
                return
            except WireError as error:
                self.stop()
                if attempt == 2:
                    raise InternalError(f"the zygote does not answer: {error}") from error

    def _ensure(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self.begin()
        if self._ready:
            return
        assert self._control is not None
        try:
            self._control.receive(_START_SECONDS)
        except WireError as error:
            self.stop()
            raise InternalError(f"the zygote did not start: {error}") from error
        self._ready = True

    def stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
