"""Runs a candidate once more under Nsight Compute, and reads its counters.

The profiler and the program it starts talk to each other in ways that no sandbox of ours lets pass.
So the candidate runs unconfined here, after the judge has accepted it, and only for somebody who
asked for that. Clocks are left as they are.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.nsight.counters import METRICS, read_counters
from kernel_smith.records import Candidate, NsightKernel, Task

_SECONDS = 300.0
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
    chosen = next((w for w in task.workloads if workload in (None, w.name)), None)
    if chosen is None:
        known = ", ".join(w.name for w in task.workloads)
        raise BadInput(f"no workload is called {workload!r}", hint=f"choose one of: {known}")
    with tempfile.TemporaryDirectory(prefix="kernel-smith-ncu-") as name:
        folder = Path(name)
        (folder / "task.json").write_text(task.model_dump_json())
        (folder / "candidate.json").write_text(candidate.model_dump_json())
        target = (sys.executable, "-m", "kernel_smith.evaluation.nsight.target", name, chosen.name)
        return read_counters(_run(_command(ncu, target)))


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
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise MissingPrerequisite(
            f"Nsight Compute was not done after {_SECONDS:g} s", hint="leave out --ncu"
        ) from None
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
