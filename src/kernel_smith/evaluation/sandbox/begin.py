"""How a zygote comes to be: as a program of its own, or as a copy of a judge that has torch."""

from __future__ import annotations

import gc
import os
import resource
import signal
from collections.abc import Iterable

from kernel_smith.evaluation.sandbox.confine import devices, die_with_parent
from kernel_smith.evaluation.sandbox.memory import keep_freed_memory
from kernel_smith.evaluation.sandbox.wire import Channel
from kernel_smith.evaluation.sandbox.zygote import PATIENT_THREADS, Kind, Run, serve


def be_zygote(kind: Kind, fd: int, judge: int, cores: Iterable[int]) -> None:
    """Serve the process `judge`, which holds the other end of the socket, until it hangs up."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(judge)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.sched_setaffinity(0, cores)
    run = _load_runner() if kind == "candidates" else _refuse
    serve(Channel.from_fd(fd), run)


def load_torch() -> None:
    """Import what a zygote for candidates and a judge both need, which takes seconds."""
    keep_freed_memory()
    os.environ.update(PATIENT_THREADS)
    gc.disable()  # none of it is garbage, and to search takes an eighth of the time
    import kernel_smith.evaluation.sandbox.runner  # noqa: F401

    gc.enable()


def _load_runner() -> Run:
    # Only now: an orphan must not outlive its judge for so long.
    load_torch()
    from kernel_smith.evaluation.sandbox.runner import Runner, warm_up

    runners = {False: Runner}
    if devices.nodes():
        from kernel_smith.evaluation.sandbox import triton_tools
        from kernel_smith.evaluation.sandbox.device_runner import DeviceRunner

        if devices.gpus().vendor == "NVIDIA" and triton_tools.is_usable():
            triton_tools.warm_up()
        runners[True] = DeviceRunner
    # Last: what exists then is never searched for garbage.
    warm_up()
    return lambda channel, gpu: runners[gpu](channel).serve()


def _refuse(channel: Channel, gpu: bool) -> None:
    raise RuntimeError("this zygote starts programs only")
