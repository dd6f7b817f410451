"""Trying a mined class out: arguments, inputs, sizes; then the finished task, run and examined."""

from __future__ import annotations

import inspect
import math
import time
from dataclasses import dataclass
from typing import Any

import torch

from kernel_smith.trajectories.mine.closure import Extract
from kernel_smith.trajectories.mine.inside.construct import Made, constructions
from kernel_smith.trajectories.mine.inside.layouts import SIZES, attempts
from kernel_smith.trajectories.mine.inside.objects import draw, tensors_of
from kernel_smith.trajectories.mine.plan import Input, Plan, Symbol
from kernel_smith.trajectories.mine.refusal import Refused
from kernel_smith.trajectories.mine.render import task_text

_MOST_ATTEMPTS = 250
# Of processor time, so that a busy machine refuses no class. Whoever waits is ended from outside.
_SEARCH_SECONDS = 8.0
_FORWARD_SECONDS = 1.0
_ELEMENTS = (1 << 20, 1 << 18, 1 << 16)
_GROWTH = (2, 1)
_MOST_RESULT_ELEMENTS = 1 << 24


@dataclass(frozen=True)
class _Running:
    made: Made
    inputs: list[Input]
    sizes: dict[Symbol, int]


def find_plan(extract: Extract) -> Plan:
    """A plan whose task was run. Raises `Refused`."""
    torch.manual_seed(0)
    scope: dict[str, Any] = {"__name__": "mined"}
    try:
        exec(compile(extract.text, "mined.py", "exec"), scope)
    except Exception as error:
        raise Refused("does-not-load", f"{type(error).__name__}: {error}"[:300]) from error
    kind = scope[extract.class_name]
    if inspect.isabstract(kind):
        raise Refused("constructor-fails", "it is abstract")
    with torch.no_grad():
        running = _first_that_runs(extract, kind)
        larger = _larger(running)
        plan = Plan(
            **running.made.plan,
            inputs=tuple(running.inputs),
            workloads={"large": _used(running, larger), "small": _used(running, running.sizes)},
        )
        examine_task(task_text(extract, plan, "mined", "mined"), plan)
    return plan


def _first_that_runs(extract: Extract, kind: type[torch.nn.Module]) -> _Running:
    deadline = time.process_time() + _SEARCH_SECONDS
    failure = ""
    for made in constructions(kind, extract):
        for sizes in SIZES:
            for number, inputs in enumerate(attempts(made.model, extract.text)):
                if number == _MOST_ATTEMPTS or time.process_time() > deadline:
                    break
                try:
                    tensors_of(made.model(*draw(inputs, sizes)))
                except Refused:
                    raise
                except Exception as error:
                    failure = failure or f"{type(error).__name__}: {error}"[:300]
                else:
                    return _Running(made, inputs, sizes)
    raise Refused("no-inputs-found", failure)


def _larger(running: _Running) -> dict[Symbol, int]:
    """Sizes for which the module has some work to do: wider inputs first, else more of them."""
    seconds = _seconds(running, running.sizes)
    few = _most_elements(running, running.sizes)
    for elements in _ELEMENTS:
        # Work grows at least as fast as the inputs, so what is hopeless is not tried.
        if seconds * elements / few > _FORWARD_SECONDS:
            continue
        for growth in _GROWTH:
            sizes: dict[Symbol, int] = {
                name: size if name == "batch" else size * growth
                for name, size in running.sizes.items()
            }
            each = _most_elements(running, sizes | {"batch": 1})
            sizes["batch"] = max(2, elements // each)
            if each <= elements and _seconds(running, sizes) < _FORWARD_SECONDS:
                return sizes
    raise Refused("no-larger-size", "it is too slow, or fails")


def _seconds(running: _Running, sizes: dict[Symbol, int]) -> float:
    """How long a call takes; infinite if it fails, or answers with too much."""
    inputs = draw(running.inputs, sizes)
    started = time.process_time()
    try:
        results = tensors_of(running.made.model(*inputs))
    except Exception:
        return math.inf
    taken = time.process_time() - started
    return taken if sum(t.numel() for t in results) <= _MOST_RESULT_ELEMENTS else math.inf


def _most_elements(running: _Running, sizes: dict[Symbol, int]) -> int:
    return max(_elements(given, sizes) for given in running.inputs)


def _elements(given: Input, sizes: dict[Symbol, int]) -> int:
    if given.kind in ("size", "none"):
        return 1
    product = 1
    for part in given.shape:
        product *= sizes[part] if isinstance(part, str) else part
    return product


def _used(running: _Running, sizes: dict[Symbol, int]) -> dict[Symbol, int]:
    named = {part for given in running.inputs for part in given.shape}
    return {name: size for name, size in sizes.items() if name in named}


def examine_task(text: str, plan: Plan) -> None:
    """Run the finished file on each workload. Raises `Refused`."""
    scope: dict[str, Any] = {"__name__": "task"}
    exec(compile(text, "task.py", "exec"), scope)
    arguments = scope["get_init_inputs"]() if plan.init else []
    torch.manual_seed(1)
    model = scope["Model"](*arguments)
    for sizes in plan.workloads.values():
        try:
            _examine(model, scope["get_inputs"](**sizes), scope["get_inputs"](**sizes))
        except Refused:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"[:300]
            raise Refused("does-not-run-again", message) from error


def _examine(model: torch.nn.Module, first: list[Any], other: list[Any]) -> None:
    given = [tensor for tensor in first if isinstance(tensor, torch.Tensor)]
    before = [tensor.clone() for tensor in given]
    results = tensors_of(model(*first))
    if not all(map(_equal, given, before)):
        raise Refused("changes-inputs")
    if not all(bool(t.isfinite().all()) for t in results):
        raise Refused("not-finite")
    memory = {tensor.untyped_storage().data_ptr() for tensor in given}
    if all(t.untyped_storage().data_ptr() in memory for t in results) or any(
        len(results) == 1 and _equal(results[0], tensor) for tensor in given
    ):
        raise Refused("does-nothing", "the result is an input, or a view of one")
    kept = [t.clone() for t in results]
    if not all(map(_equal, tensors_of(model(*first)), kept)):
        raise Refused("not-deterministic")
    if all(map(_equal, tensors_of(model(*other)), kept)):
        raise Refused("ignores-inputs")


def _equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.shape == right.shape and torch.equal(left, right)
