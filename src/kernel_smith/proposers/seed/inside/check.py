"""Tries a seed once on every workload: what does not agree with the reference is not handed out."""

from __future__ import annotations

import linecache
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_smith.inline import CompileError
from kernel_smith.proposers.seed.inside.task_module import TaskModule
from kernel_smith.proposers.seed.refusal import refused
from kernel_smith.records import Workload

_RTOL = {torch.float64: 1e-6, torch.float32: 2e-3, torch.float16: 1e-2, torch.bfloat16: 4e-2}
_COARSE = 0.15


def check(source: str, module: TaskModule, workloads: Sequence[Workload], device: str) -> None:
    """Raise if the seed does not compile or gives another answer than the reference."""
    with tempfile.TemporaryDirectory(prefix="kernel-smith-") as folder:
        path = Path(folder) / "seed.py"  # Triton reads kernels from their file
        path.write_text(source, encoding="utf-8")
        scope = _load(source, path)
        for workload in workloads:
            _compare(scope["ModelNew"], module, workload, device)
        linecache.clearcache()


def _load(source: str, path: Path) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "seed", "__file__": str(path)}
    try:
        exec(compile(source, path, "exec"), scope)
    except CompileError as error:
        lines = [line for line in error.log.splitlines() if "error" in line]
        why = lines[0].partition("error:")[2].strip() if lines else str(error)
        raise refused(f"the compiler's C++ needs its own headers: {why}") from None
    return scope


def _compare(model_new: Any, module: TaskModule, workload: Workload, device: str) -> None:
    with torch.device(device):
        torch.manual_seed(7)
        reference = module.make_model(workload)
        torch.manual_seed(7)
        seed = model_new(*module.init_inputs(workload))
        seed.load_state_dict(reference.state_dict())
        inputs = module.make_inputs(workload)
    with torch.no_grad():
        try:
            actual = seed(*inputs)
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            raise refused(f"the seed fails on workload {workload.name}: {first[:200]}") from None
        expected = reference(*inputs)
    problem = difference(actual, expected)
    if problem:
        raise refused(f"the seed differs from the reference on {workload.name}: {problem}")


def difference(actual: Any, expected: Any) -> str | None:
    """What is wrong with a result, or None. Tensors are compared at the precision of their type."""
    mine, mine_spec = pytree.tree_flatten(actual)
    theirs, spec = pytree.tree_flatten(expected)
    if mine_spec != spec:
        return f"it returns {mine_spec}, not {spec}"
    for index, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        if isinstance(other, torch.Tensor):
            problem = _tensor_difference(one, other)
            if problem:
                return f"output {index} {problem}"
        elif one != other:
            return f"output {index} is {one!r}, not {other!r}"
    return None


def _tensor_difference(actual: torch.Tensor, expected: torch.Tensor) -> str | None:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"is {actual.dtype} {tuple(actual.shape)}"
    if not expected.is_floating_point():
        wrong = (actual != expected).double().mean().item()
        # Rounding to integers, and choosing among equals, may go either way.
        return f"differs in {wrong:.1%} of its elements" if wrong > 0.01 else None
    mine, theirs = actual.double(), expected.double()
    rtol = _RTOL.get(expected.dtype, _COARSE)
    scale = theirs[theirs.isfinite()].abs().mean().nan_to_num()
    error = (mine - theirs).abs() - rtol * (theirs.abs() + scale)
    wrong = ((error > 0) & (mine != theirs)).double().mean().item()
    if (mine.isnan() != theirs.isnan()).any():
        return "has NaN in other places"
    return f"is off in {wrong:.1%} of its elements" if wrong > 1e-3 else None
