"""What the benchmarks share."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version

import kernel_smith
from kernel_smith.inline.toolchain import find_toolchain


def describe_machine() -> dict[str, str | int | None]:
    """The hardware and the versions that stand beside every figure."""
    model = "unknown"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("model name", "CPU part")):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "processor": f"{platform.machine()} {model}",
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "compiler": find_toolchain("cpp").version,
        "kernel_smith": kernel_smith.__version__,
    }


def progress(what: str) -> None:
    print(f"\r{what}    ", end="", file=sys.stderr, flush=True)
