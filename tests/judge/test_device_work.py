"""What a reference must move and compute is counted; floors are never too high."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.evaluation.judge.evidence.work import Work, choose_precision, count_work
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.records import Precision, Task

FRAME = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        {forward}


def get_inputs():
    return [{inputs}]
"""


def work(
    forward: str,
    inputs: str,
    init: str = "pass",
    arguments: str = "x",
    device: str = "cpu",
    precision: Precision = Precision.STRICT,
) -> Work:
    source = FRAME.format(init=init, arguments=arguments, forward=forward, inputs=inputs)
    task = Task(name="counted", source=source, precision=precision)
    with torch.device(device):
        reference = Reference(task, device)
        (workload,) = task.workloads
        return count_work(reference, workload, reference.draw(workload, 1))


def test_elementwise_work_reads_its_input_and_writes_its_output() -> None:
    counted = work("return (x + 1).half()", "torch.randn(30, 10)")
    assert counted == Work(floor_bytes=600, traffic_bytes=1800, flops=0, precision="fp32")


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_products_are_counted_with_their_parameters(device: str) -> None:
    counted = work(
        "return self.linear(x)",
        "torch.randn(8, 16)",
        init="self.linear = torch.nn.Linear(16, 4)",
        device=device,
    )
    assert counted.flops == 2 * 8 * 16 * 4
    assert counted.floor_bytes == 8 * 4 * 4
    assert counted.traffic_bytes == 4 * (8 * 16 + 16 * 4 + 4 + 8 * 4)


def test_an_input_that_is_used_twice_is_read_once() -> None:
    counted = work("return x.sum() * x", "torch.randn(100)")
    assert counted.traffic_bytes == 800


def test_what_is_never_used_is_not_read() -> None:
    counted = work(
        "return x + 1",
        "torch.randn(10), torch.randn(1000)",
        init="self.register_buffer('spare', torch.zeros(1000))",
        arguments="x, unused",
    )
    assert counted.traffic_bytes == 80


@pytest.mark.parametrize(
    "lookup", ["self.table(x)", "self.table.weight[x]", "self.table.weight.index_select(0, x)"]
)
def test_of_a_table_only_the_rows_that_were_taken_count(lookup: str) -> None:
    counted = work(
        f"return {lookup}",
        "torch.randint(0, 1000, (5,))",
        init="self.table = torch.nn.Embedding(1000, 8)",
    )
    assert counted.traffic_bytes == 5 * 8 + 2 * 5 * 8 * 4


def test_a_small_table_is_read_once_however_often_it_is_looked_up_in() -> None:
    counted = work(
        "return self.table(x)",
        "torch.randint(0, 4, (500,))",
        init="self.table = torch.nn.Embedding(4, 8)",
    )
    assert counted.traffic_bytes == 500 * 8 + 4 * 8 * 4 + 500 * 8 * 4


def test_of_a_sliced_tensor_only_the_slice_counts() -> None:
    assert work("return x[:10] + 1", "torch.randn(100)").traffic_bytes == 80


def test_halves_of_a_tensor_add_up_to_the_whole() -> None:
    counted = work("a, b = x.chunk(2); return a * b", "torch.randn(100)")
    assert counted.traffic_bytes == 400 + 200


@pytest.mark.parametrize("forward", ["return x.view(-1)", "return self.kept"])
def test_outputs_that_already_exist_are_no_floor(forward: str) -> None:
    counted = work(
        forward, "torch.randn(10, 10)", init="self.register_buffer('kept', torch.ones(50))"
    )
    assert counted.floor_bytes == 0


def test_an_output_that_repeats_its_memory_counts_with_its_memory() -> None:
    assert work("return (x + 1).expand(100, 10)", "torch.randn(1, 10)").floor_bytes == 40


def test_outputs_that_share_memory_are_written_once() -> None:
    assert work("y = x + 1; return y, y.view(-1)", "torch.randn(5, 5)").floor_bytes == 100


def test_the_inputs_are_left_as_they_were() -> None:
    source = FRAME.format(
        init="pass", arguments="x", forward="return x.add_(1)", inputs="torch.randn(10)"
    )
    task = Task(name="counted", source=source)
    reference = Reference(task)
    inputs = reference.draw(task.workloads[0], 1)
    before = inputs.tensors[0].clone()
    count_work(reference, task.workloads[0], inputs)
    assert torch.equal(inputs.tensors[0], before)


@pytest.mark.parametrize(
    ("dtypes", "allowed", "expected"),
    [
        ([torch.float32], Precision.STRICT, "fp32"),
        ([torch.float32], Precision.TF32, "tf32"),
        ([torch.float32], Precision.BF16, "bf16"),
        ([torch.float64], Precision.STRICT, "fp64"),
        ([torch.bfloat16], Precision.TF32, "bf16"),
        ([torch.float16, torch.int64], Precision.STRICT, "fp16"),
        ([torch.float8_e4m3fn], Precision.STRICT, "fp8"),
        ([torch.int8], Precision.STRICT, "int8"),
        ([torch.int64], Precision.STRICT, "fp32"),
        ([], Precision.STRICT, "fp32"),
    ],
)
def test_the_precision_follows_dtypes_and_the_task(
    dtypes: list[torch.dtype], allowed: Precision, expected: str
) -> None:
    tensors = [torch.zeros(8).to(dtype) for dtype in dtypes]
    assert choose_precision(tensors, allowed) == expected


def test_the_dtype_of_most_data_decides() -> None:
    tensors = [torch.zeros(100, dtype=torch.bfloat16), torch.zeros(8)]
    assert choose_precision(tensors, Precision.STRICT) == "bf16"
