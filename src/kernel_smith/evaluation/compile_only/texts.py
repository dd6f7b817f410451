"""Compiles the kernels of a candidate whose kernels are texts, for a GPU that need not be here."""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.compile_only.run import GATE_LIMITS
from kernel_smith.evaluation.compile_only.targets import TARGETS
from kernel_smith.evaluation.judge.compiling.source import SourceCompiler
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.inline import resources as told
from kernel_smith.inline.literals import Literal
from kernel_smith.inline.toolchain import Toolchain, find_toolchain
from kernel_smith.records import (
    MEANINGS,
    Candidate,
    CompileReport,
    KernelResources,
    Reason,
    Stage,
    Task,
)

_SHARED_BYTES = 64 << 10  # of a block, where no table says otherwise
_PLAIN_NAME = re.compile(r"\w+")


def compile_texts(
    task: Task, candidate: Candidate, arch: str | None, progress: Callable[[str], None]
) -> CompileReport:
    """Say whether the kernels compile for an architecture, and what they use there.

    Raises `MissingPrerequisite` without the compiler; a bad candidate is a report with a reason.
    """
    toolchain = find_toolchain(candidate.backend, "native", arch)
    began = time.monotonic()
    progress(f"compiling {candidate.name} for {toolchain.arch}")
    rejected, kernels = _build(candidate, toolchain)
    reason = None if rejected is None else rejected.reason
    known = TARGETS.get(toolchain.arch)
    limit = known.shared_bytes if known else _SHARED_BYTES
    return CompileReport(
        task=task.name,
        task_hash=task.content_hash,
        candidate_hash=candidate.content_hash,
        backend=candidate.backend,
        target=toolchain.arch,
        shared_limit=limit,
        stage=MEANINGS[reason].stage if reason else Stage.OK,
        reason=reason,
        message="" if rejected is None else rejected.message,
        log="" if rejected is None else str(rejected.evidence.get("log", "")),
        kernels=tuple(_resources(kernel, line, limit) for kernel, line in kernels),
        compiler=f"{toolchain.compiler.name}: {toolchain.version}",
        seconds=time.monotonic() - began,
        created_at=datetime.now(UTC),
    )


def _build(
    candidate: Candidate, toolchain: Toolchain
) -> tuple[Rejected | None, list[tuple[told.KernelResources, int | None]]]:
    """Compile every text in a sandbox; why not, and the kernels with the lines that they are on."""
    try:
        tree = ast.parse(candidate.source)
    except SyntaxError as error:
        return Rejected(Reason.SYNTAX_ERROR, str(error)), []
    backend = find_backend(candidate.backend)
    literals = backend.sources(tree)
    if not literals:
        return Rejected(Reason.NO_KERNEL_SOURCE, "no kernel's text can be read from the file"), []
    folder = Path(tempfile.mkdtemp(prefix="kernel-smith-"))
    processes = ProcessPool(folder)
    compiler = SourceCompiler(
        candidate,
        tree,
        backend,
        processes,
        CoreSet.choose(None),
        GATE_LIMITS,
        arch=toolchain.arch,
    )
    try:
        compiler.build_ahead()
        return None, [(kernel, _line(kernel.name, literals)) for kernel in compiler.resources]
    except Rejected as rejected:
        return rejected, []
    finally:
        compiler.close()
        processes.close()
        shutil.rmtree(folder, ignore_errors=True)


def _line(name: str, literals: list[Literal]) -> int | None:
    """Where a kernel's name first stands in the file."""
    plain = _PLAIN_NAME.match(_shown(name).rpartition("::")[2])
    word = plain.group() if plain else name
    for literal in literals:
        for piece in literal.pieces:
            for number, line in enumerate(piece.text.splitlines()):
                if re.search(rf"\b{re.escape(word)}\s*\(", line):
                    return piece.first_line + number
    return None


def _shown(name: str) -> str:
    """`void norm<float>(float const*, long)` as `norm<float>`."""
    name = name.replace("(anonymous namespace)::", "")
    return name.partition("(")[0].rpartition(" ")[2] if "<" not in name else _templated(name)


def _templated(name: str) -> str:
    head, _, rest = name.partition("<")
    return f"{head.rpartition(' ')[2]}<{rest.rpartition('>(')[0]}>"


def _resources(kernel: told.KernelResources, line: int | None, limit: int) -> KernelResources:
    shared = kernel.shared or 0
    return KernelResources(
        name=_shown(kernel.name),
        line=line,
        registers=kernel.registers,
        spill_bytes=kernel.spill_bytes,
        shared_bytes=shared,
        occupancy=None,
        fits=shared <= limit,
        compile_seconds=0.0,
    )
