"""Compiles every kernel that a Triton candidate would launch, in a sandbox and without a GPU."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.backends.triton import require_triton
from kernel_smith.evaluation.compile_only.answer import Answer, CompiledKernel, read_answer
from kernel_smith.evaluation.compile_only.targets import Target
from kernel_smith.evaluation.compile_only.vendor import Kit, require_kit
from kernel_smith.evaluation.compile_only.verdict import Ending, decide, fits, readable_log
from kernel_smith.evaluation.judge.processes.child import Interrupted
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.records import (
    MEANINGS,
    Candidate,
    CompileReport,
    KernelFailure,
    KernelResources,
    Limits,
    Stage,
    Task,
)

Progress = Callable[[str], None]

# Tensors of a GPU's size are reserved, though hardly touched; an autotuner compiles often.
GATE_LIMITS = Limits(
    load_seconds=60, compile_seconds=300, memory_bytes=8 << 30, scratch_bytes=512 << 20
)

_INSIDE = Path(__file__).parent / "inside"
_PRODUCT = "report.json"
_ATTEMPTS = 2
# The sandbox hides our package, so the files in its scratch folder take their places in it.
# Nothing that is imported is garbage: it is not searched.
_BOOT = """
import gc, os, sys, types
gc.disable()
name = ""
for part in "kernel_smith.evaluation.compile_only.inside".split("."):
    name = f"{name}.{part}" if name else part
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = []
package.__path__ = [os.getcwd()]
from kernel_smith.evaluation.compile_only.inside.main import main
gc.freeze()
gc.enable()
main()
"""


def _silent(what: str) -> None:
    """The default audience for progress."""


def compile_only(
    task: Task,
    candidate: Candidate,
    target: Target,
    limits: Limits = GATE_LIMITS,
    progress: Progress = _silent,
) -> CompileReport:
    """Say whether the candidate compiles for `target`, and what its kernels use there.

    Raises `MissingPrerequisite` without a Triton that knows the target; a bad candidate is a report
    with a reason.
    """
    version = require_triton()
    kit = require_kit(target.kind)
    began = time.monotonic()
    progress(f"compiling {candidate.name} for {target.name}")
    answer, ending = _run(task, candidate, target, kit, limits)
    reason, message = decide(answer, ending, target, candidate.name)
    return CompileReport(
        task=task.name,
        task_hash=task.content_hash,
        candidate_hash=candidate.content_hash,
        backend=candidate.backend,
        target=target.name,
        shared_limit=target.shared_bytes,
        stage=MEANINGS[reason].stage if reason else Stage.OK,
        reason=reason,
        message=message,
        log=readable_log(answer.outcome if answer else None, ending.log, candidate.name),
        kernels=tuple(_resources(k, target) for k in (answer.kernels if answer else ())),
        failures=tuple(
            KernelFailure(**failure.model_dump()) for failure in (answer.failures if answer else ())
        ),
        compiler=f"triton {version}",
        seconds=time.monotonic() - began,
        created_at=datetime.now(UTC),
    )


def _run(
    task: Task, candidate: Candidate, target: Target, kit: Kit, limits: Limits
) -> tuple[Answer | None, Ending]:
    """Run the inside part; repeat it if the sandbox, and not the candidate, failed."""
    for _ in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix="kernel-smith-"))
        try:
            return _run_once(task, candidate, target, kit, limits, folder)
        except Interrupted as error:
            failure = error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    raise InternalError(f"the sandbox failed repeatedly: {failure}")


def _run_once(
    task: Task, candidate: Candidate, target: Target, kit: Kit, limits: Limits, folder: Path
) -> tuple[Answer | None, Ending]:
    product = folder / _PRODUCT
    processes = ProcessPool(folder)
    seconds = limits.load_seconds + limits.compile_seconds
    seconds += limits.call_seconds * len(task.workloads)
    try:
        status, log = processes.run_program(
            CoreSet.choose(None),
            limits,
            ["/usr/bin/env", *kit.variables, sys.executable, "-P", "-c", _BOOT],
            files=_files(task, candidate, target),
            product=_PRODUCT,
            target=product,
            timeout=seconds,
            readable=kit.readable,
        )
    finally:
        # Also waits until the monitor has brought back the report of a process that was stopped.
        processes.close()
    return read_answer(product), Ending(status, log)


def _files(task: Task, candidate: Candidate, target: Target) -> dict[str, str]:
    workloads = [{"name": w.name, "params": w.params} for w in task.workloads]
    files = {path.name: path.read_text(encoding="utf-8") for path in _INSIDE.glob("*.py")}
    return files | {
        "task.py": task.source,
        "candidate.py": candidate.source,
        "request.json": json.dumps({"target": asdict(target), "workloads": workloads}),
    }


def _resources(kernel: CompiledKernel, target: Target) -> KernelResources:
    fitting = fits(kernel, target)
    occupancy = None
    if fitting and kernel.registers is not None:
        occupancy = target.occupancy(kernel.warps, kernel.registers, kernel.shared_bytes)
    return KernelResources(**kernel.model_dump(), fits=fitting, occupancy=occupancy)
