"""Tries a seed once on every workload: what does not agree with the reference is not handed out."""

from __future__ import annotations

import functools
import linecache
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_smith.inline import CompileError
from kernel_smith.proposers.seed.inside.comparison import Kept, difference, keep_all, keep_sample
from kernel_smith.proposers.seed.inside.memory import first_that_fits, has_room_for, short_of
from kernel_smith.proposers.seed.inside.needs import explained_for, total_bytes
from kernel_smith.proposers.seed.inside.refusing import refusing
from kernel_smith.proposers.seed.inside.workbench import Workbench
from kernel_smith.proposers.seed.refusal import refused
from kernel_smith.records import Workload


def check(source: str, workbench: Workbench, workloads: Sequence[Workload]) -> dict[str, float]:
    """Raise if the seed does not compile or gives another answer than the reference.

    Returns the share of the elements that were compared, by workload.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-smith-") as folder:
        path = Path(folder) / "seed.py"  # Triton reads kernels from their file
        path.write_text(source, encoding="utf-8")
        scope = _load(source, path)
        shares = {}
        for workload in reversed(workloads):  # the last one is still on the device
            with workbench.time.using(), explained_for(workbench.module, workload):
                shares[workload.name] = _compare(scope["ModelNew"], workbench, workload)
        linecache.clearcache()
    return {workload.name: shares[workload.name] for workload in workloads}


def _load(source: str, path: Path) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "seed", "__file__": str(path)}
    try:
        exec(compile(source, path, "exec"), scope)
    except CompileError as error:
        if short_of(error) is not None:
            raise
        lines = [line for line in error.log.splitlines() if "error" in line]
        why = lines[0].partition("error:")[2].strip() if lines else str(error)
        raise refused(f"the compiler's C++ needs its own headers: {why}") from None
    return scope


def _compare(model_new: Any, workbench: Workbench, workload: Workload) -> float:
    """Compare all of the result, or a sample where two results find no room beside the inputs."""
    steps = [
        functools.partial(_compare_once, model_new, workbench, workload, sampled)
        for sampled in (False, True)
    ]
    return first_that_fits(steps, workbench.clear)


def _compare_once(model_new: Any, workbench: Workbench, workload: Workload, sampled: bool) -> float:
    """Run the reference and the seed on the same inputs, of which export saw that none changes."""
    drawn = workbench.draw(workload)
    with torch.no_grad():
        with refusing("the task's own code fails"):
            expected = _keep(drawn.model(*drawn.inputs), workbench.device, sampled)
        seed = workbench.make_seed_model(model_new, workload)
        with refusing(f"the seed fails on workload {workload.name}"):
            actual = seed(*drawn.inputs)
    del drawn, seed
    workbench.clear()
    problem = difference(actual, expected)
    if problem:
        raise refused(f"the seed differs from the reference on {workload.name}: {problem}")
    return _share_compared(actual, expected)


def _keep(result: Any, device: str, sampled: bool) -> Any:
    """Keep of each tensor all of it, or a sample if another result would find no room."""
    if not sampled and has_room_for(total_bytes(result), device):
        return pytree.tree_map_only(torch.Tensor, keep_all, result)
    return pytree.tree_map_only(torch.Tensor, keep_sample, result)


def _share_compared(actual: Any, expected: Any) -> float:
    tensors = (leaf for leaf in pytree.tree_leaves(actual) if isinstance(leaf, torch.Tensor))
    elements = sum(tensor.numel() for tensor in tensors)
    kept = [leaf.compared for leaf in pytree.tree_leaves(expected) if isinstance(leaf, Kept)]
    return sum(kept) / elements if elements else 1.0
