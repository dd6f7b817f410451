"""Runs a candidate once more under Nsight Compute, and reads its counters.

Clocks are left as they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.nsight.counters import METRICS, read_counters
from kernel_smith.evaluation.watching import run_tool, watched_call
from kernel_smith.records import Candidate, NsightKernel, Task

_USUAL_PLACES = ("/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
_LOG_SHOWN = 2000


def find_ncu() -> Path | None:
    """The newest one, if there are several."""
    on_path = shutil.which("ncu")
    if on_path:
        return Path(on_path)
    found = [path for pattern in _USUAL_PLACES for path in Path("/").glob(pattern[1:])]
    return max(found, default=None)


def profile_candidate(
    task: Task, candidate: Candidate, workload: str | None = None
) -> tuple[NsightKernel, ...]:
    """The kernels of one call on one workload (default: the first), each with its counters."""
    ncu = find_ncu()
    if ncu is None:
        raise MissingPrerequisite(
            "Nsight Compute (ncu) is not installed",
            hint="install it with the CUDA toolkit, or leave out --ncu",
        )
    with watched_call(task, candidate, workload, "ncu") as call:
        return read_counters(_run(_command(ncu, call.command)))


def _command(ncu: Path, target: tuple[str, ...]) -> list[str]:
    options = ("--csv", "--page", "raw", "--print-units", "base")
    scope = ("--profile-from-start", "off", "--target-processes", "application-only")
    return [
        str(ncu),
        *options,
        *scope,
        "--clock-control",
        "none",
        "--metrics",
        ",".join(METRICS),
        *target,
    ]


def _run(command: list[str]) -> str:
    done = run_tool(command, name="Nsight Compute", option="--ncu")
    said = done.stdout + done.stderr
    if "ERR_NVGPUCTRPERM" in said:
        raise MissingPrerequisite(
            "this user may not read the GPU's performance counters",
            hint="set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or run as root",
        )
    if done.returncode != 0:
        raise MissingPrerequisite(
            f"Nsight Compute failed: {said[-_LOG_SHOWN:].strip()}", hint="leave out --ncu"
        )
    return done.stdout
