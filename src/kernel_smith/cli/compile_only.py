"""`kernel-smith evaluate --compile-only`: does a candidate compile for a GPU?"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from kernel_smith.cli.output import console, print_json, print_next, progress
from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate, Task
from kernel_smith.records.compile_prose import render_compiled

_TRITON_ARCH = "sm_90"


def compile_and_print(
    task: Task, candidate: Candidate, path: Path, arch: str | None, *, json: bool, quiet: bool
) -> bool:
    """Compile for `arch`, print the report, and say whether all is well."""
    from kernel_smith.evaluation.backends import find_backend
    from kernel_smith.evaluation.compile_only import compile_only, compile_texts, find_target

    backend = find_backend(candidate.backend)
    if not backend.gpu:
        raise BadInput(
            f"--compile-only is for kernels for a GPU, not for backend {candidate.backend}",
            hint="name another --backend, or leave out --compile-only",
        )
    with progress(quiet) as report:
        if backend.in_process:
            target = find_target(arch or _TRITON_ARCH)
            compiled = compile_only(task, candidate, target, progress=report)
        else:
            compiled = compile_texts(task, candidate, arch, report)
    if json:
        print_json(compiled.model_dump(mode="json"))
        return compiled.ok
    console.print(f"{task.name} <- {path}", style="bold")
    console.print(render_compiled(compiled))
    console.print(f"Compiled by {compiled.compiler}; no GPU was used.")
    command = shlex.join(["kernel-smith", *sys.argv[1:]])
    if compiled.ok:
        print_next(f"{command} --json", "the whole record")
    else:
        print_next(command, "after the change")
    return compiled.ok
