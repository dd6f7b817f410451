"""Runs a candidate once more under MetaX's mcTracer, and reads the trace that it writes.

Written from documentation and public traces, tested against a stand-in, not run on MetaX hardware.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.mctracer.trace import read_trace
from kernel_smith.evaluation.watching import WatchedCall, run_tool, watched_call
from kernel_smith.inline.dialects import recipe
from kernel_smith.records import Candidate, Task, TracedKernel

_NAME = "mcTracer"
_OUTPUT = "trace"
_LOG_SHOWN = 2000


def find_mctracer() -> Path | None:
    """The one of $MACA_PATH, if there are several."""
    home = recipe("maca").home_folder()
    found = shutil.which(_NAME, path=f"{home}/bin") or shutil.which(_NAME)
    return None if found is None else Path(found).absolute()


def trace_candidate(
    task: Task, candidate: Candidate, workload: str | None = None
) -> tuple[TracedKernel, ...]:
    """The kernels of one call on one workload (default: the first), those that took most first."""
    mctracer = find_mctracer()
    if mctracer is None:
        raise MissingPrerequisite(
            "mcTracer is not installed",
            hint="install the MACA SDK and set MACA_PATH to its folder, or leave out --mctracer",
        )
    with watched_call(task, candidate, workload, "mctracer") as call:
        said = _run(mctracer, call)
        return read_trace(_written(call.folder / _OUTPUT, said))


def _run(mctracer: Path, call: WatchedCall) -> str:
    # mcTracer puts the current folder before the one of its output.
    options = ("--mctx", "--odname", _OUTPUT, "--name", "kernel-smith")
    command = (str(mctracer), *options, *call.command)
    done = run_tool(command, name="mcTracer", option="--mctracer", folder=call.folder)
    said = (done.stdout + done.stderr)[-_LOG_SHOWN:].strip()
    if done.returncode != 0:
        raise MissingPrerequisite(f"mcTracer failed: {said}", hint="leave out --mctracer")
    return said


def _written(folder: Path, said: str) -> str:
    """The longest trace: programs that the candidate starts may have theirs, without kernels."""
    traces = sorted(folder.glob("tracer_out-*.json"), key=lambda path: path.stat().st_size)
    if not traces:
        raise MissingPrerequisite(f"mcTracer wrote no trace: {said}", hint="leave out --mctracer")
    return traces[-1].read_text(errors="replace")
