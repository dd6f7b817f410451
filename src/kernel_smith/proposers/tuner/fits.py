"""Refuses values that cannot fit, before they cost an evaluation.

The bounds are generous, since a wrong refusal hides a good value and a missing one costs little.
For Triton: threads per program, powers of two for `tl.arange`, elements of a tensor, registers of a
tensor and shared memory of a product. For tiles of any backend: the sizes of the task's workloads.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernel_smith.proposers.tuner.numbers import is_power_of_two, words
from kernel_smith.proposers.tuner.scope import integer, last_name
from kernel_smith.proposers.tuner.space import Role, Space, Tunable, Values
from kernel_smith.proposers.tuner.triton_kernels import Kernel, defaults, find_kernels
from kernel_smith.records import Task

_THREADS_PER_WARP = 32
_MOST_THREADS = 1024
# Triton's own bound.
_MOST_ELEMENTS = 1 << 20
# Twice what a thread has in registers: less than that may live in tensor memory or be packed.
_MOST_PER_THREAD = 512
# What a program can have on today's largest devices.
_SHARED_MEMORY = 227 << 10
_USUAL_WARPS = 4
_USUAL_STAGES = 3
_SMALL_TYPES = ("float8", "int8", "fp8", "e4m3", "e5m2", "int4")

Shape = tuple[str | int | None, ...]


@dataclass(frozen=True)
class _Needs:
    """What a kernel makes of its parameters: the shapes of its tensors, and of its products."""

    counted: frozenset[str]
    shapes: tuple[Shape, ...]
    has_product: bool


class Fitting:
    """Whether values of one space fit: `problem(values)` says what does not, or nothing."""

    def __init__(self, space: Space, task: Task) -> None:
        self._space = space
        usual = _usual_extents(task.source)
        self._extents = [_extents(usual, workload.params) for workload in task.workloads]
        kernels = find_kernels(ast.parse(space.source))
        self._needs = {name: _needs(kernel) for name, kernel in kernels.items()}
        self._defaults = {
            name: {parameter: integer(node) for parameter, node in defaults(kernel)}
            for name, kernel in kernels.items()
        }
        text = task.source + space.source
        self._element_bytes = 1 if any(small in text for small in _SMALL_TYPES) else 2

    def problem(self, values: Values) -> str:
        problems = (
            *(self._launch_problem(*launch) for launch in self._launches(values)),
            *(
                self._size_problem(tunable, values[tunable.name])
                for tunable in self._space.tunables
                if values[tunable.name] != tunable.current
            ),
        )
        return next((problem for problem in problems if problem), "")

    def _launches(self, values: Values) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield the parameters of each launch whose values are among these."""
        sites: dict[tuple[int, str], dict[str, int]] = {}
        for tunable in self._space.tunables:
            value = values[tunable.name]
            for binding in tunable.bindings:
                given = sites.setdefault((binding.site, binding.kernel), {})
                if isinstance(value, int):
                    # Of several values for one parameter (`64 if wide else 32`) the least counts.
                    given[binding.parameter] = min(value, given.get(binding.parameter, value))
        for (_, kernel), given in sites.items():
            fixed = self._defaults.get(kernel, {})
            yield kernel, {k: v for k, v in fixed.items() if v is not None} | given

    def _launch_problem(self, kernel: str, given: dict[str, int]) -> str:
        needs = self._needs.get(kernel)
        threads = given.get("num_warps", _USUAL_WARPS) * _THREADS_PER_WARP
        if threads > _MOST_THREADS:
            return f"{threads} threads in a program, of {_MOST_THREADS}"
        if needs is None:
            return ""
        for name in sorted(needs.counted & given.keys()):
            if not is_power_of_two(given[name]):
                return f"{name}={given[name]} in tl.arange is no power of two"
        for shape in needs.shapes:
            elements = math.prod(_resolved(shape, given))
            if elements > _MOST_ELEMENTS:
                return f"a tensor of {elements} elements, of {_MOST_ELEMENTS}"
            if elements > _MOST_PER_THREAD * threads:
                return f"{elements} elements in the registers of {threads} threads"
        return self._product_problem(needs, given) if needs.has_product else ""

    def _product_problem(self, needs: _Needs, given: dict[str, int]) -> str:
        """The operands of a product wait in shared memory, one pair for each stage but one."""
        results = [shape for shape in needs.shapes if len(shape) == 2]
        if not results:
            return ""
        rows, columns = _resolved(results[0], given)
        inner = [given[name] for name in needs.counted - set(results[0]) if name in given]
        if len(inner) != 1:
            return ""
        stages = max(1, given.get("num_stages", _USUAL_STAGES) - 1)
        needed = stages * (rows + columns) * inner[0] * self._element_bytes
        return f"{needed} bytes of shared memory" if needed > _SHARED_MEMORY else ""

    def _size_problem(self, tunable: Tunable, value: int | str) -> str:
        """A tile that is larger than everything there is, or than the extent it is named for."""
        if tunable.role is not Role.TILE or not isinstance(value, int):
            return ""
        if not self._extents or not all(self._extents):
            return ""
        everything = max(math.prod(extents.values()) for extents in self._extents)
        bound = _next_power_of_two(everything)
        named = [
            extent
            for extents in self._extents
            for name, extent in extents.items()
            if set(words(name)) & set(words(tunable.name))
        ]
        if named:
            bound = min(bound, _next_power_of_two(max(named)))
        return f"{tunable.name}={value} exceeds the sizes of the task" if value > bound else ""


def _needs(kernel: Kernel) -> _Needs:
    counted: set[str] = set()
    shapes: list[Shape] = []
    has_product = False
    for node in ast.walk(kernel.function):
        if not isinstance(node, ast.Call):
            continue
        called = last_name(node)
        if called == "arange" and len(node.args) == 2:
            extent = _dimension(node.args[1], kernel)
            counted |= {extent} if isinstance(extent, str) else set()
            shapes.append((extent,))
        elif called in ("zeros", "full", "ones"):
            shapes += [
                tuple(_dimension(element, kernel) for element in shape.elts)
                for shape in node.args[:1]
                if isinstance(shape, ast.Tuple | ast.List)
            ]
        has_product = has_product or called == "dot"
    return _Needs(frozenset(counted), tuple(shapes), has_product)


def _dimension(node: ast.expr, kernel: Kernel) -> str | int | None:
    if isinstance(node, ast.Name) and node.id in kernel.constants:
        return node.id
    return integer(node)


def _resolved(shape: Shape, given: dict[str, int]) -> list[int]:
    """Return a shape in numbers; what is not known counts as one."""
    return [given.get(d, 1) if isinstance(d, str) else d or 1 for d in shape]


def _usual_extents(task_source: str) -> dict[str, Any]:
    """Return the defaults of the arguments of `get_inputs`."""
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(task_source)):
        if isinstance(node, ast.FunctionDef) and node.name == "get_inputs":
            arguments = [*node.args.posonlyargs, *node.args.args]
            usual = node.args.defaults
            named = arguments[len(arguments) - len(usual) :]
            for argument, default in zip(named, usual, strict=True):
                found[argument.arg] = integer(default)
    return found


def _extents(usual: dict[str, Any], params: dict[str, Any]) -> dict[str, int]:
    """Return the integer arguments of `get_inputs` in one workload. Nothing if it takes none."""
    given = usual | params
    return {name: value for name, value in given.items() if type(value) is int and value > 0}


def _next_power_of_two(value: int) -> int:
    return 1 << (value - 1).bit_length()
