"""Starting processes through the zygotes: candidates, references and compilers."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.processes.child import Child
from kernel_smith.evaluation.judge.processes.zygote import Be, Zygote
from kernel_smith.evaluation.sandbox.confine import Policy, default_readable, installation_of
from kernel_smith.evaluation.sandbox.wire import Channel
from kernel_smith.records import Limits

_CPU_SECONDS = 3600
_COMPILER_LOG = 64 << 10
_MOST_UNBURIED = 16
_LAUNCHING_CORES = 2


@dataclass(frozen=True)
class CoreSet:
    """Which cores belong to timed work, and which to the judge and its compilers."""

    timed: frozenset[int]
    judge: frozenset[int]

    @classmethod
    def choose(cls, cores: tuple[int, ...] | None) -> CoreSet:
        """All but one core for timed work, so that the judge never competes with what it times."""
        allowed = sorted(os.sched_getaffinity(0))
        foreign = sorted(set(cores or ()) - set(allowed))
        if foreign:
            raise BadInput(
                f"cores that this process may not use: {', '.join(map(str, foreign))}",
                hint=f"choose among {', '.join(map(str, allowed))}",
            )
        timed = frozenset(cores or allowed[1:] or allowed)
        return cls(timed, frozenset(allowed) - timed or frozenset(allowed))

    def for_device(self) -> CoreSet:
        """Launching kernels takes one core and a little of another; compilers get the others."""
        timed = frozenset(sorted(self.timed)[-_LAUNCHING_CORES:])
        return CoreSet(timed, (self.timed | self.judge) - timed or timed)


class ProcessPool:
    """Owns the zygotes; their children work below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.chmod(0o711)
        self._candidates = Zygote("candidates")
        self._compilers = Zygote("compilers")
        self._count = 0
        self._readable: tuple[Path, ...] | None = None
        self._dead: deque[Child] = deque()

    def begin(self, be: Be) -> None:
        """Start the zygotes, that for candidates as a copy of this process."""
        self._compilers.begin()
        self._candidates.fork(be)

    @property
    def zygote_pid(self) -> int:
        return self._candidates.pid

    def new_folder(self, name: str, mode: int = 0o755) -> Path:
        self._count += 1
        path = self.folder / f"{name}-{self._count}-{os.urandom(4).hex()}"
        path.mkdir()
        path.chmod(mode)
        return path

    def start(
        self,
        place: CoreSet,
        limits: Limits,
        *,
        readable: tuple[Path, ...] = (),
        confined: bool = True,
        trusted: bool = False,
        gpu: bool = False,
        shared_bytes: int = 0,
    ) -> Child:
        """Fork a child that runs a candidate's or (`trusted`) a reference's code.

        Returns at once; the child makes itself ready while the judge does other things.
        """
        while len(self._dead) > _MOST_UNBURIED:
            self.bury_one()
        # What runs on a GPU is compiled in its own process, and only then moved to be timed.
        cores = place.judge if gpu else place.timed
        policy = self._policy(limits, cores, readable, gpu=gpu)
        child = self._spawn(policy, place, confined=confined, shared_bytes=shared_bytes)
        child.trusted = trusted
        return child

    def run_program(
        self,
        place: CoreSet,
        limits: Limits,
        argv: list[str],
        files: dict[str, str],
        product: str,
        target: Path,
        timeout: float,
        readable: tuple[Path, ...] = (),
    ) -> tuple[int | None, str]:
        """Run a compiler, confined, on files of its own; its product is copied to `target`.

        Returns its exit status, None if it had to be stopped, and the end of what it printed.
        """
        granted = (*installation_of(Path(argv[0])), *readable)
        policy = self._policy(limits, place.judge, granted, allow_exec=True)
        with target.open("wb") as product_file:
            child = self._spawn(
                policy, place, argv=argv, files=files, product=product, into=product_file.fileno()
            )
        try:
            code = child.wait(timeout)
            exceeded = "" if code is None else child.exit_report().get("exceeded")
            stopped = f"\nstopped: {exceeded}" if exceeded else ""
            return code, child.read_log(_COMPILER_LOG) + stopped
        finally:
            self.end(child)

    def end(self, child: Child) -> None:
        """Kill a child now, and clear away what is left of it later."""
        child.kill()
        self._dead.append(child)

    def bury_one(self) -> bool:
        """Clear away the child that ended first: it has had time to go. False if none is left."""
        if not self._dead:
            return False
        self._dead.popleft().bury()
        return True

    def _policy(
        self,
        limits: Limits,
        cores: frozenset[int],
        readable: tuple[Path, ...],
        *,
        allow_exec: bool = False,
        gpu: bool = False,
    ) -> Policy:
        if self._readable is None:
            self._readable = default_readable()
        return Policy(
            scratch=self.new_folder("scratch", 0o777),
            readable=(*self._readable, *readable),
            memory_bytes=limits.memory_bytes,
            # The library and the kernels each keep a thread per core.
            processes=limits.processes + 2 * len(cores),
            cpu_seconds=_CPU_SECONDS,
            file_bytes=limits.scratch_bytes,
            scratch_bytes=limits.scratch_bytes,
            cores=cores,
            allow_exec=allow_exec,
            gpu=gpu,
        )

    def _spawn(
        self,
        policy: Policy,
        place: CoreSet,
        *,
        confined: bool = True,
        shared_bytes: int = 0,
        argv: Sequence[str] = (),
        files: Mapping[str, str] = MappingProxyType({}),
        product: str = "",
        into: int | None = None,
    ) -> Child:
        job = {
            "policy": _jsonable(policy),
            "confined": confined,
            "shared_bytes": shared_bytes,
            "argv": list(argv),
            "files": dict(files),
            "product": product,
            "judge_cores": sorted(place.judge),
        }
        channel, far_channel = Channel.pair()
        status, far_status = Channel.pair()
        log = os.memfd_create("kernel-smith-log", os.MFD_CLOEXEC)
        fds = (far_channel.fileno(), far_status.fileno(), log, log if into is None else into)
        (self._compilers if argv else self._candidates).ask(job, fds)
        far_channel.close()
        far_status.close()
        return Child(channel, status, log, policy.scratch)

    def close(self) -> None:
        while self.bury_one():
            pass
        self._candidates.stop()
        self._compilers.stop()


def _jsonable(policy: Policy) -> dict[str, Any]:
    fields = dict(vars(policy))
    fields["scratch"] = str(policy.scratch)
    fields["readable"] = [str(path) for path in policy.readable]
    fields["cores"] = sorted(policy.cores)
    return fields
