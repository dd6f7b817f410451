"""No honest kernel is rejected: optimised candidates for every task, with all the techniques an
engineer might use, go through the real engine. (`tests/suite` compares the starting kernels with
their references.)

A file is named `<task>__<idea>.py`, after a task of the suite or one of `tests/adversarial/tasks`.
Candidates of one task run one after the other, so that the judge prepares the task once.

`make test` evaluates one of each kind, most on one workload of their task and none on more than
two; `make test-all` and a plain `pytest` evaluate all of them on all workloads.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Options, Sampling, Stage, Task
from kernel_smith.tasks import builtin_tasks, read_task

pytestmark = pytest.mark.slow

TASKS = {task.name: task for task in builtin_tasks()}
OTHER_TASKS = Path(__file__).parents[1] / "adversarial" / "tasks"
CANDIDATES = sorted((Path(__file__).parent / "candidates").glob("*.py"))

# Speed is not the point: few rounds, and no interval is too wide.
OPTIONS = Options(
    seeds=2,
    sampling=Sampling(target=10.0, unstable_above=1e9, min_rounds=3, max_rounds=4, max_seconds=5.0),
)

# Candidates that draw parameters in another order than the reference, and how many that concerns.
REDRAWN = {"layer_norm__specialised_widths": 2, "linear_layer_scale__folded_scale": 3}

# What an honest program may do that a judge could take amiss, and who does it in every `make test`.
KINDS = {
    "several results in one allocation": "adamw_step__one_allocation",
    "a table of addresses": "adamw_step__pointer_table",
    "memory of its own that grows and stays": "avg_pool2d__aligned_memory",
    "few reads, with rounding of their own": "avg_pool2d__summed_area",
    "parameters folded once and kept": "batch_norm_relu__folded_once",
    "a source that need not compile": "bias_hardswish_residual__best_that_compiles",
    "results in memory that was released": "bias_hardswish_residual__released_pool",
    "codes rounded by the bits of a format": "block_quantise_int8__exponent_bits",
    "products left to the library": "causal_attention__library_products",
    "rows that are never complete": "causal_attention__flash_tiles",
    "results cut from a slab": "channel_statistics__slab_slices",
    "code that the loader picks": "column_sum__clones_by_loader",
    "exceptions and words of its own": "column_sum__sections_and_exceptions",
    "complex results": "complex_magnitude__pairs_of_floats",
    "another algorithm, less precise": "conv2d_3x3_relu__winograd",
    "coroutines": "embedding_bag__coroutine",
    "pieces copied ahead": "decode_linear__pieces_copied_ahead",
    "what the last call left behind": "decode_linear__last_call_kept",
    "weights from the end that is still cached": "decode_linear__there_and_back",
    "eight bits by tables": "float8_cast__search_in_table",
    "threads that are joined": "gelu_tanh__chunks_in_threads",
    "sums in an order of chance": "graph_aggregate__atomic_scatter",
    "memory that is read again": "halves__one_room",
    "parameters in another layout": "int8_weight_linear__transposed_buffer",
    "results of several dtypes": "kinds_of_results__one_byte_buffer",
    "numbers as results": "kinds_of_results__one_pass",
    "large inputs": "large_softmax__threads_of_rows",
    "parameters drawn in another order": "layer_norm__specialised_widths",
    "timing of its own": "layer_norm__tuned_at_first_call",
    "hooks and parts": "linear_gelu__hooks_and_parts",
    "packing at the first call": "linear_gelu__packed_at_first_call",
    "parameters multiplied into others": "linear_layer_scale__folded_scale",
    "some workloads left to the library": "matmul__library_for_double",
    "threads that stand by": "max_pool2d__standing_pool",
    "a forward that is inherited": "normalised_rows__sequential",
    "a template in memory": "padded__template",
    "a function for autograd": "pairwise_distance__autograd_function",
    "sources written at run time": "row_softmax__generated_per_shape",
    "no mathematics of infinities": "row_logsumexp__pairwise_tree",
    "exports made by macros": "row_max_index__macro_exports",
    "strict precision": "strict_matmul__stolen_tiles",
    "a worker that spins": "swiglu__spin_then_sleep",
    "generators": "topk_routing__generator_forward",
    "strides as they come": "turned__by_strides",
}

# Whose point is what they do from one workload to the next.
SEVERAL_WORKLOADS = {
    "bias_hardswish_residual__released_pool",
    "layer_norm__specialised_widths",
    "matmul__library_for_double",
    "row_softmax__generated_per_shape",
}

# Beyond this share of library time, samples may miss what little the authored kernel takes.
MOSTLY_LIBRARY = 0.3


class Case(NamedTuple):
    task: Task
    path: Path

    @property
    def label(self) -> str:
        return self.path.stem.replace("__", "-")


def task_of(path: Path) -> Task:
    name = path.stem.partition("__")[0]
    return TASKS[name] if name in TASKS else read_task(OTHER_TASKS / f"{name}.py")


CASES = [Case(task_of(path), path) for path in CANDIDATES]


def in_part(case: Case) -> Case:
    """Return the case with the last two of its task's workloads, where several are the point, or
    else with one: always the same, and others elsewhere."""
    workloads = case.task.workloads
    number = zlib.crc32(case.label.encode()) % len(workloads)
    several = case.path.stem in SEVERAL_WORKLOADS
    chosen = workloads[-2:] if several else workloads[number : number + 1]
    return case._replace(task=case.task.model_copy(update={"workloads": chosen}))


def parameters() -> list[Any]:
    """Return what `make test` takes, and with the mark `sweep` the rest."""
    found = []
    for case in CASES:
        is_kind, part = case.path.stem in KINDS.values(), in_part(case)
        whole = part.task.workloads == case.task.workloads
        sweep = () if is_kind and whole else pytest.mark.sweep
        found.append(pytest.param(case, id=case.label, marks=sweep))
        if is_kind and not whole:
            found.append(pytest.param(part, id=f"{case.label}-part"))
    return found


def evaluated(engine: LocalEngine, task: Task, name: str, source: str) -> Evaluation:
    """The evaluation, which must have ended well."""
    evaluation = engine.evaluate(task, Candidate(source=source, name=name), OPTIONS)
    assert evaluation.stage is Stage.OK, (
        f"{evaluation.reason}: {evaluation.message}\n{evaluation.log}"
    )
    return evaluation


def share(evaluation: Evaluation, origin: str) -> float:
    return sum(kernel.share for kernel in evaluation.kernels if kernel.origin == origin)


def redrawn(evaluation: Evaluation) -> list[int]:
    """How many parameters, per workload, the notes call drawn in another order."""
    found = (re.search(r"(\d+) parameters were drawn", note) for note in evaluation.notes)
    return [int(match[1]) for match in found if match]


@pytest.mark.parametrize("case", parameters())
def test_an_honest_kernel_is_accepted(engine: LocalEngine, case: Case) -> None:
    evaluation = evaluated(engine, case.task, case.path.name, case.path.read_text())
    assert evaluation.accuracy is not None
    assert evaluation.accuracy.deterministic is not None
    if evaluation.kernels and share(evaluation, "library") < MOSTLY_LIBRARY:
        assert share(evaluation, "authored") > 0
    expected = (
        [REDRAWN[case.path.stem]] * len(case.task.workloads) if case.path.stem in REDRAWN else []
    )
    assert redrawn(evaluation) == expected
    if case.task.name == "large_softmax":
        assert any("results compared with the reference's" in note for note in evaluation.notes)


SQUARE_LINEAR = '''
"""A linear layer as wide as its input."""

import torch


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(200, 64)]
'''

TRANSPOSED_IN_PLACE = '''
import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>

extern "C" void linear(const float* x, const float* columns, const float* bias, float* y,
                       int64_t tokens, int64_t width) {
    for (int64_t t = 0; t < tokens; ++t) {
        float* out = y + t * width;
        for (int64_t h = 0; h < width; ++h) out[h] = bias[h];
        for (int64_t f = 0; f < width; ++f)
            for (int64_t h = 0; h < width; ++h) out[h] += x[t * width + f] * columns[f * width + h];
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
        self.linear.weight.data = self.linear.weight.data.t().contiguous()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        kernels.linear(x.contiguous(), self.linear.weight, self.linear.bias, y, *x.shape)
        return y
'''


def test_a_square_weight_may_be_transposed_in_the_constructor(
    engine: LocalEngine, tmp_path: Path
) -> None:
    """Name and shape are the reference's, the order of the values is not."""
    file = tmp_path / "square_linear.py"
    file.write_text(SQUARE_LINEAR)
    evaluation = evaluated(engine, read_task(file), "transposed.py", TRANSPOSED_IN_PLACE)
    assert redrawn(evaluation) == []


def test_the_collection_is_broad() -> None:
    tasks = {task_of(path).name for path in CANDIDATES}
    families = {task_of(path).family for path in CANDIDATES}
    assert tasks >= set(TASKS)
    assert families >= {task.family for task in TASKS.values()}
    kinds = set(KINDS.values())
    assert set(REDRAWN) | SEVERAL_WORKLOADS <= kinds <= {path.stem for path in CANDIDATES}
