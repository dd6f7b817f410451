"""A zygote: `python -m kernel_smith.evaluation.sandbox candidates|compilers FD JUDGE CORE...`.

Started by the process JUDGE, which holds the other end of the socket FD.
"""

from __future__ import annotations

import os
import resource
import signal
import sys

from kernel_smith.evaluation.sandbox.confine import devices, die_with_parent
from kernel_smith.evaluation.sandbox.memory import keep_freed_memory
from kernel_smith.evaluation.sandbox.wire import Channel
from kernel_smith.evaluation.sandbox.zygote import Run, serve


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(int(sys.argv[3]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.sched_setaffinity(0, {int(core) for core in sys.argv[4:]})
    run = _load_runner() if sys.argv[1] == "candidates" else _refuse
    serve(Channel.from_fd(int(sys.argv[2])), run)


def _load_runner() -> Run:
    keep_freed_memory()
    # Only now: importing torch takes seconds, which an orphan must not outlive.
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


if __name__ == "__main__":
    main()
