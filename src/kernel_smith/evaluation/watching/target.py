"""The program that a tool watches: one call of a candidate, after a few to warm up.

Run as `python -m kernel_smith.evaluation.watching.target TOOL FOLDER WORKLOAD`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import torch

from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.records import Candidate, Task, Workload

_WARM_UP_CALLS = 3
_SEED = 1


def main(tool: str, folder: Path, name: str) -> None:
    task = Task.model_validate_json((folder / "task.json").read_text())
    candidate = Candidate.model_validate_json((folder / "candidate.json").read_text())
    workload = next(workload for workload in task.workloads if workload.name == name)
    module = _load(candidate, folder)
    reference = Reference(task, "cuda")
    model = _build(module, reference, workload)
    inputs = reference.draw(workload, _SEED).arguments()
    with torch.no_grad():
        for _ in range(_WARM_UP_CALLS):
            model(*inputs)
        torch.cuda.synchronize()
        with WATCHED[tool]():
            model(*inputs)
            torch.cuda.synchronize()


@contextmanager
def _between_start_and_stop() -> Iterator[None]:
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    yield
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


@contextmanager
def _after_a_mark() -> Iterator[None]:
    """For a tool that cannot be told when to start: the kernel of `_sleep` tells its reader."""
    torch.cuda._sleep(1)  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()  # so that the call's kernels come later, on whichever stream
    yield


WATCHED = {"ncu": _between_start_and_stop, "mctracer": _after_a_mark}


def _load(candidate: Candidate, folder: Path) -> ModuleType:
    """From a file: Triton reads kernels from theirs."""
    path = folder / "candidate.py"
    path.write_text(candidate.source)
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _build(module: ModuleType, reference: Reference, workload: Workload) -> torch.nn.Module:
    with torch.device("cuda"):
        model: torch.nn.Module = module.ModelNew(*reference.init_arguments(workload))
    model.load_state_dict(reference.model(workload).state_dict())
    return model.to("cuda")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
