"""Which references fall into independent rows, and that their rows are those of the whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference, secret_seed
from kernel_smith.evaluation.judge.inputs.rows import PartOfReference, Rows, find_rows
from kernel_smith.evaluation.judge.values.accuracy import relative_error
from kernel_smith.records import Task

WriteTask = Callable[..., Task]

TRIES = 8  # which rows are tried is left to chance


def source(forward: str, inputs: str, arguments: str = "x", layers: str = "pass") -> str:
    return f"""
import torch
import torch.nn.functional as F

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, {arguments}):
        {forward}

def get_inputs():
    return {inputs}
"""


# What a reference computes, and which of its inputs are split.
SEPARABLE = {
    "elementwise": (source("return x * 2 + 1", "[torch.randn(24, 5)]"), (True,)),
    "one_dimension": (source("return x.abs()", "[torch.randn(33)]"), (True,)),
    "softmax": (source("return torch.softmax(x, -1)", "[torch.randn(24, 7)]"), (True,)),
    "sum_of_two": (
        source("return x + y", "[torch.randn(9, 5), torch.randn(9, 5)]", "x, y"),
        (True, True),
    ),
    "bias": (source("return x + y", "[torch.randn(9, 5), torch.randn(5)]", "x, y"), (True, False)),
    "bias_as_long_as_the_batch": (
        source("return x + y", "[torch.randn(6, 6), torch.randn(6)]", "x, y"),
        (True, False),
    ),
    "factor_per_row": (
        source("return x * y[:, None]", "[torch.randn(6, 6), torch.randn(6)]", "x, y"),
        (True, True),
    ),
    "square_matmul": (
        source("return x @ y", "[torch.randn(16, 16), torch.randn(16, 16)]", "x, y"),
        (True, False),
    ),
    "wide_matmul": (
        source("return x @ y", "[torch.randn(16, 8), torch.randn(8, 30)]", "x, y"),
        (True, False),
    ),
    "outer_matmul": (
        source("return x @ y", "[torch.randn(8, 16), torch.randn(16, 8)]", "x, y"),
        (True, False),
    ),
    "matmul_with_transposed_right": (
        source("return x @ y.t()", "[torch.randn(12, 7), torch.randn(12, 7)]", "x, y"),
        (True, False),
    ),
    "batched_matmul": (
        source("return x @ y", "[torch.randn(6, 3, 4), torch.randn(6, 4, 3)]", "x, y"),
        (True, True),
    ),
    "linear": (
        source("return self.f(x)", "[torch.randn(12, 8)]", layers="self.f = torch.nn.Linear(8, 5)"),
        (True,),
    ),
    "square_linear": (
        source("return self.f(x)", "[torch.randn(8, 8)]", layers="self.f = torch.nn.Linear(8, 8)"),
        (True,),
    ),
    "conv": (
        source(
            "return self.f(x)",
            "[torch.randn(5, 3, 9, 9)]",
            layers="self.f = torch.nn.Conv2d(3, 4, 3, padding=1)",
        ),
        (True,),
    ),
    "layer_norm": (
        source("return self.f(x)", "[torch.randn(12, 8)]", layers="self.f = torch.nn.LayerNorm(8)"),
        (True,),
    ),
    "batch_norm_as_it_is_used": (
        source(
            "return self.f(x)",
            "[torch.randn(12, 8)]",
            layers="self.f = torch.nn.BatchNorm1d(8).eval()",
        ),
        (True,),
    ),
    "attention": (
        source(
            "return F.scaled_dot_product_attention(q, k, v)",
            "[torch.randn(4, 2, 6, 8) for _ in range(3)]",
            "q, k, v",
        ),
        (True, True, True),
    ),
    "several_outputs": (
        source("return x * 2, x.sum(-1), x.argmax(-1)", "[torch.randn(24, 5)]"),
        (True,),
    ),
    "nested_outputs": (source("return {'a': [x * 2], 'b': x}", "[torch.randn(24, 5)]"), (True,)),
    "integers": (source("return x.argmax(-1)", "[torch.randn(24, 5)]"), (True,)),
    "booleans": (source("return x > 0", "[torch.randn(24, 5)]"), (True,)),
    "integers_from_integers": (
        source("return x % 7", "[torch.randint(1000, (24, 5))]"),
        (True,),
    ),
    "lookup": (
        source("return table[i]", "[torch.randn(99, 4), torch.randint(99, (31,))]", "table, i"),
        (False, True),
    ),
    "lookup_in_a_table_of_equal_length": (
        source("return table[i]", "[torch.randn(31, 4), torch.randint(31, (31,))]", "table, i"),
        (False, True),
    ),
    "half_precision": (source("return torch.tanh(x)", "[torch.randn(24, 5).half()]"), (True,)),
    "complex": (source("return torch.fft.fft(x)", "[torch.randn(24, 5)]"), (True,)),
    "insists_on_its_dtype": (
        source("assert x.dtype == torch.float32; return x * 2", "[torch.randn(24, 5)]"),
        (True,),
    ),
    "transposed": (source("return x * 2", "[torch.randn(5, 24).t()]"), (True,)),
    "numbers_beside": (source("return x * s", "[torch.randn(24, 5), 0.5]", "x, s"), (True,)),
    "constants_of_its_own": (
        source(
            "return x @ self.w",
            "[torch.randn(24, 5)]",
            layers="self.register_buffer('w', torch.randn(5, 5))",
        ),
        (True,),
    ),
}

WHOLE = {
    "batch_norm_in_training": source(
        "return self.f(x)", "[torch.randn(12, 8)]", layers="self.f = torch.nn.BatchNorm1d(8)"
    ),
    "mean_over_batch": source("return x - x.mean(0)", "[torch.randn(24, 5)]"),
    "maximum_over_batch": source("return x / x.abs().max()", "[torch.randn(24, 5)]"),
    "cumulative_sum": source("return x.cumsum(0)", "[torch.randn(24, 5)]"),
    "cumulative_sum_in_one_dimension": source("return x.cumsum(-1)", "[torch.randn(24)]"),
    "sort": source("return x.sort(0).values", "[torch.randn(24, 5)]"),
    "order": source("return x.argsort(0)", "[torch.randn(24, 5)]"),
    "flipped": source("return x.flip(0)", "[torch.randn(24, 5)]"),
    "rolled": source("return x.roll(7, 0)", "[torch.randn(24, 5)]"),
    "softmax_over_batch": source("return torch.softmax(x, 0)", "[torch.randn(24, 5)]"),
    "conv_along_the_batch": source(
        "return self.f(x)", "[torch.randn(3, 20)]", layers="self.f = torch.nn.Conv1d(3, 3, 3)"
    ),
    "gram": source("return x @ x.t()", "[torch.randn(12, 7)]"),
    "square_gram": source("return x.t() @ x", "[torch.randn(7, 7)]"),
    "product_with_itself": source("return x @ x", "[torch.randn(12, 12)]"),
    "transposing": source("return x.t()", "[torch.randn(12, 12)]"),
    "scalar": source("return x.sum()", "[torch.randn(24, 5)]"),
    "batch_summed_up": source("return x.sum(0)", "[torch.randn(24, 5)]"),
    "batch_summed_up_and_as_long": source("return x.sum(0)", "[torch.randn(24, 24)]"),
    "batch_of_one": source("return x * 2", "[torch.randn(1, 24)]"),
    "outputs_of_other_lengths": source("return x * 2, x.sum(0)", "[torch.randn(24, 5)]"),
    "output_and_scalar": source("return x * 2, x.sum()", "[torch.randn(24, 5)]"),
    "other_length": source("return x[::2] * 2", "[torch.randn(24, 5)]"),
    "insists_on_its_length": source("assert len(x) == 24; return x * 2", "[torch.randn(24, 5)]"),
    "raises_on_other_lengths": source(
        "return (x.view(12, 2, 5) * 2).view(24, 5)", "[torch.randn(24, 5)]"
    ),
    "pairs_of_rows": source(
        "return x.view(-1, 2, 5).sum(1).repeat_interleave(2, 0)", "[torch.randn(24, 5)]"
    ),
    "position_in_batch": source(
        "return x + torch.arange(len(x), dtype=x.dtype)[:, None]", "[torch.randn(24, 5)]"
    ),
    "length_of_batch": source("return x / len(x)", "[torch.randn(24, 5)]"),
    "weakly_coupled": source("return x + 1e-3 * x.mean(0)", "[torch.randn(24, 5)]"),
    "very_weakly_coupled": source("return x + 1e-6 * x.mean(0)", "[torch.randn(24, 5)]"),
    "weakly_coupled_within_tolerance": source(
        "return x + 1e-6 * x.roll(1, 0)", "[torch.randn(24, 5)]"
    ),
    "coupled_integers": source("return (x - x.mean(0) > 0).long()", "[torch.randn(2048, 5)]"),
    "one_output_coupled": source("return x * 2, x - x.mean(0)", "[torch.randn(24, 5)]"),
    # The first of some rows is the same whatever comes before them in the whole.
    "weakly_coupled_with_the_row_before": source(
        "return x + 1e-4 * F.pad(x, (0, 0, 1, 0))[:-1]", "[torch.randn(24, 5)]"
    ),
    "weakly_coupled_with_all_rows_before": source(
        "return x + 2e-5 * x.cumsum(0)", "[torch.randn(24, 5)]"
    ),
}


def rows_of(task: Task) -> tuple[Reference, InputSet, Rows | None]:
    reference = Reference(task)
    (workload,) = task.workloads
    inputs = reference.draw(workload, secret_seed())
    return (
        reference,
        inputs,
        find_rows(reference, workload, inputs, reference.call(workload, inputs)),
    )


@pytest.mark.parametrize(("text", "split"), SEPARABLE.values(), ids=SEPARABLE)
def test_the_inputs_that_have_rows_are_found(
    write_task: WriteTask, text: str, split: tuple[bool, ...]
) -> None:
    task = write_task(text)
    for _ in range(TRIES):
        reference, inputs, rows = rows_of(task)
        assert rows is not None
        assert rows.split == split
        answer = reference.call(task.workloads[0], inputs)
        assert rows.count == answer.tensors[0].shape[0]


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_what_depends_on_other_rows_or_on_their_number_is_whole(
    write_task: WriteTask, text: str
) -> None:
    task = write_task(text)
    for _ in range(TRIES):
        assert rows_of(task)[2] is None


@pytest.mark.parametrize("name", SEPARABLE)
@settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_the_answer_to_some_rows_is_theirs_in_the_whole_answer(
    write_task: WriteTask, name: str, data: st.DataObject
) -> None:
    task = write_task(SEPARABLE[name][0], name=name)
    (workload,) = task.workloads
    reference, inputs, rows = rows_of(task)
    assert rows is not None
    start = data.draw(st.integers(0, rows.count - 1))
    stop = data.draw(st.integers(start + 1, rows.count))
    whole = reference.call(workload, inputs).tensors
    part = reference.call(workload, rows.take(inputs, start, stop)).tensors
    for mine, all_rows in zip(part, whole, strict=True):
        theirs = all_rows[start:stop]
        assert mine.shape == theirs.shape
        if mine.is_floating_point():
            assert relative_error(mine, theirs) < (4e-3 if mine.itemsize < 4 else 1e-5)
        elif mine.is_complex():
            assert torch.allclose(mine, theirs)
        else:
            assert torch.equal(mine, theirs)


def test_rows_are_views_and_other_inputs_stay_whole() -> None:
    inputs = InputSet(None, [torch.randn(8, 4), torch.randn(8, 4)], "small")
    part = Rows(8, (True, False)).take(inputs, 2, 5)
    assert part.tensors[0].data_ptr() == inputs.tensors[0][2].data_ptr()
    assert part.tensors[0].shape == (3, 4)
    assert part.tensors[1] is inputs.tensors[1]
    assert part.label == "small"


# Also where there is memory for one row alone in double precision.
def test_weak_coupling_is_found_where_rows_are_large(write_task: WriteTask) -> None:
    reference = Reference(write_task(source("return x + 1e-4 * x.mean(0)", "[torch.randn(24, 5)]")))
    (workload,) = reference.task.workloads
    for _ in range(TRIES):
        inputs = reference.draw(workload, secret_seed())
        answer = reference.call(workload, inputs)
        assert find_rows(reference, workload, inputs, answer, 1) is None


def test_an_empty_output_beside_others_has_rows(write_task: WriteTask) -> None:
    _, _, rows = rows_of(write_task(source("return x[:, :0], x * 2", "[torch.randn(24, 5)]")))
    assert rows == Rows(24, (True,))


def test_looking_for_rows_leaves_the_inputs_alone(write_task: WriteTask) -> None:
    task = write_task(source("return x.mul_(2)", "[torch.randn(24, 5)]"))
    reference = Reference(task)
    (workload,) = task.workloads
    inputs = reference.draw(workload, secret_seed())
    before = inputs.tensors[0].clone()
    assert find_rows(reference, workload, inputs, reference.call(workload, inputs)) is not None
    assert torch.equal(inputs.tensors[0], before)


def test_a_part_answers_for_rows_of_fresh_draws_or_of_those_that_are_given(
    write_task: WriteTask,
) -> None:
    reference, inputs, rows = rows_of(write_task(SEPARABLE["bias"][0]))
    (workload,) = reference.task.workloads
    assert rows is not None
    part = PartOfReference(reference, rows, 3, inputs)
    drawn = [part.draw(workload, secret_seed()) for _ in range(20)]
    assert all(d.tensors[0].shape == (3, 5) for d in drawn)
    windows = inputs.tensors[0].unfold(0, 3, 1).transpose(1, 2)
    assert all(any(torch.equal(d.tensors[0], w) for w in windows) for d in drawn)
    assert len({d.tensors[0].numpy().tobytes() for d in drawn}) > 1
    drawn[0].tensors[0].zero_()
    assert inputs.tensors[0].abs().min() > 0, "a copy"
    fresh = PartOfReference(reference, rows, 99)
    assert fresh.draw(workload, 1).tensors[0].shape == (9, 5), "no more than there are"
    assert not torch.equal(fresh.draw(workload, 1).tensors[0], inputs.tensors[0])
