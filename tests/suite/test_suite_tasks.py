"""Every built-in task is well formed and can tell right from wrong; its starting kernel is right.

The judge is not involved: task files and starting kernels run in this process.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch

from kernel_smith.records import Task, Variant, Workload
from kernel_smith.tasks import builtin_tasks

TASKS = builtin_tasks()

# The largest error of a starting kernel, relative to the size of the output.
ALLOWED_ERROR = {
    torch.float64: 1e-12,
    torch.float32: 4e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1.5e-2,
}


class Case(NamedTuple):
    """One workload of one task."""

    task: Task
    workload: Workload


CASES = [Case(task, workload) for task in TASKS for workload in task.workloads]


def has_odd_size(workload: Workload) -> bool:
    sizes = workload.params.values()
    return any(isinstance(size, int) and size > 8 and size % 2 for size in sizes)


each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
each_case = pytest.mark.parametrize(
    "case", CASES, ids=[f"{case.task.name}-{case.workload.name}" for case in CASES]
)
# Kernels go wrong with a variant where sizes are odd or types are narrow, if anywhere.
each_telling_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=f"{case.task.name}-{case.workload.name}",
            marks=()
            if has_odd_size(case.workload) or "dtype" in case.workload.params
            else pytest.mark.sweep,
        )
        for case in CASES
    ],
)


@cache
def module_at(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"suite_{abs(hash(path))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reference_module(case: Case) -> ModuleType:
    assert case.task.path is not None
    return module_at(case.task.path)


def built(case: Case, model: type[torch.nn.Module]) -> torch.nn.Module:
    """The reference or the starting kernel, always with the same parameters."""
    make: Callable[..., list[Any]] = getattr(reference_module(case), "get_init_inputs", list)
    named = inspect.signature(make).parameters if make is not list else {}
    params = {key: value for key, value in case.workload.params.items() if key in named}
    torch.manual_seed(17)
    return model(*make(**params))


def reference(case: Case) -> torch.nn.Module:
    return built(case, reference_module(case).Model)


def start(case: Case) -> torch.nn.Module:
    return built(case, module_at(case.task.starts["cpp"]).ModelNew)


def inputs_of(case: Case, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    return list(reference_module(case).get_inputs(**case.workload.params))


def run(model: torch.nn.Module, inputs: list[Any]) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        outputs = model(*inputs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def on_floats(inputs: list[Any], change: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    return [
        change(x) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    ]


def spiked(x: torch.Tensor) -> torch.Tensor:
    places = torch.randperm(x.numel())[: max(1, x.numel() // 1000)]
    enlarged = x.flatten().clone()
    enlarged[places] *= 1e3
    return enlarged.view_as(x)


VARIANTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    Variant.LARGE: lambda x: x * 1e3,
    Variant.SMALL: lambda x: x * 1e-3,
    Variant.SPIKES: spiked,
    Variant.SORTED: lambda x: x.sort(dim=-1).values,
    Variant.TIES: lambda x: (x * 4).round() / 4,
}


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest error, each relative to its element's size plus the output's typical size."""
    expected = expected.double()
    typical = expected.square().mean().sqrt()
    return float(((got.double() - expected).abs() / (expected.abs() + typical)).max())


def assert_equal_outputs(case: Case, inputs: list[Any]) -> None:
    """The starting kernel agrees with the reference, evaluated in double precision."""
    native = run(reference(case), inputs)
    oracle = run(copy.deepcopy(reference(case)).double(), on_floats(inputs, torch.Tensor.double))
    got = run(start(case), inputs)
    assert len(got) == len(native)
    for mine, theirs, exact in zip(got, native, oracle, strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        if mine.is_floating_point():
            assert relative_error(mine, exact) <= ALLOWED_ERROR[mine.dtype]
        else:
            assert torch.equal(mine, theirs)
            assert torch.equal(mine, exact)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small work is slower on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_suite_is_broad() -> None:
    assert len(TASKS) >= 26
    assert len({task.family for task in TASKS}) >= 12
    assert sum(not task.library_calls for task in TASKS) >= 2


@each_task
def test_a_task_describes_itself_and_has_a_starting_kernel(task: Task) -> None:
    assert task.family != "unsorted"
    assert task.description.endswith(".")
    assert 2 <= len(task.workloads) <= 3
    assert "cpp" in task.starts


@each_task
def test_a_task_has_a_workload_with_an_odd_size(task: Task) -> None:
    assert any(map(has_odd_size, task.workloads))


@each_case
def test_shapes_and_dtypes_are_the_same_for_every_seed(case: Case) -> None:
    def kinds(values: tuple[Any, ...] | list[Any]) -> list[object]:
        return [(v.shape, v.dtype) if isinstance(v, torch.Tensor) else v for v in values]

    first, second = inputs_of(case, 1), inputs_of(case, 2)
    assert kinds(first) == kinds(second)
    assert kinds(run(reference(case), first)) == kinds(run(reference(case), second))


@each_case
def test_the_reference_is_finite_repeatable_and_leaves_its_inputs_alone(case: Case) -> None:
    model, inputs = reference(case), inputs_of(case, 3)
    before = copy.deepcopy(inputs)
    first, again = run(model, inputs), run(model, inputs)
    for one, two in zip(first, again, strict=True):
        assert torch.isfinite(one).all()
        assert torch.equal(one, two)
    for was, now in zip(before, inputs, strict=True):
        assert torch.equal(was, now) if isinstance(was, torch.Tensor) else was == now


@each_case
def test_outputs_differ_between_seeds_and_from_zeros_and_their_mean(case: Case) -> None:
    outputs = run(reference(case), inputs_of(case, 4))
    others = run(reference(case), inputs_of(case, 5))
    for output, other in zip(outputs, others, strict=True):
        mean = output.double().mean().expand(output.shape)
        for wrong in (other, torch.zeros_like(output), mean):
            assert relative_error(wrong, output) > 0.1


@each_case
def test_the_starting_kernel_has_the_parameters_of_the_reference(case: Case) -> None:
    mine, theirs = start(case).state_dict(), reference(case).state_dict()
    assert list(mine) == list(theirs)
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


@each_case
def test_the_starting_kernel_equals_the_reference(case: Case) -> None:
    assert_equal_outputs(case, inputs_of(case, 6))


@each_telling_case
def test_the_starting_kernel_survives_the_variants(case: Case) -> None:
    inputs = inputs_of(case, 8)
    for variant in VARIANTS.keys() & set(case.task.variants):
        assert_equal_outputs(case, on_floats(inputs, VARIANTS[variant]))


@each_case
def test_the_starting_kernel_takes_strided_tensors(case: Case) -> None:
    def every_other(x: Any) -> Any:
        return torch.stack([x, x], dim=-1)[..., 0] if isinstance(x, torch.Tensor) else x

    inputs = inputs_of(case, 9)
    strided = [every_other(x) for x in inputs]
    for apart, packed in zip(run(start(case), strided), run(start(case), inputs), strict=True):
        assert torch.equal(apart, packed)
