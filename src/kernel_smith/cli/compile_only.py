"""`kernel-smith evaluate --compile-only`: does a Triton candidate compile for this GPU?"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from kernel_smith.cli.output import console, print_json, print_next, progress
from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate, Task
from kernel_smith.records.compile_prose import render_compiled

DEFAULT_ARCH = "sm_90"

_BACKEND = "triton"


def compile_and_print(
    task: Task, candidate: Candidate, path: Path, arch: str, *, json: bool, quiet: bool
) -> bool:
    """Compile for `arch`, print the report, and say whether all is well."""
    from kernel_smith.evaluation.gate import compile_only, find_target

    if candidate.backend != _BACKEND:
        raise BadInput(
            f"--compile-only is for Triton candidates, not for backend {candidate.backend}",
            hint=f"add --backend {_BACKEND}, or leave out --compile-only",
        )
    target = find_target(arch)
    with progress(quiet) as report:
        compiled = compile_only(task, candidate, target, progress=report)
    if json:
        print_json(compiled.model_dump(mode="json"))
        return compiled.ok
    console.print(f"{task.name} <- {path}", style="bold", markup=False)
    console.print(render_compiled(compiled), markup=False)
    console.print(f"Compiled by triton {compiled.triton}; no GPU was used.", markup=False)
    command = shlex.join(["kernel-smith", *sys.argv[1:]])
    if compiled.ok:
        print_next(f"{command} --json", "the whole record")
    else:
        print_next(command, "after the change")
    return compiled.ok
