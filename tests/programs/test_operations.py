"""Which operations references use, and which of them are near."""

from __future__ import annotations

import pytest

from kernel_smith.programs.operations import likeness, operations
from kernel_smith.tasks import builtin_tasks, find_task

CPU = {task.name: operations(task.source) for task in builtin_tasks()}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("row_softmax", "temperature_softmax_vocab"),
        ("layer_norm", "layer_norm_vit"),
        ("gelu_tanh", "gelu_exact_bert"),
        ("conv2d_3x3_relu", "depthwise_conv2d"),
        ("cumulative_sum", "cumulative_sum_long"),
    ],
)
def test_tasks_are_near_that_compute_alike(name: str, nearest: str) -> None:
    own, other = operations(find_task(name).source), operations(find_task(nearest).source)
    assert likeness(own, other) >= 0.5


def test_that_both_are_written_as_tasks_are_makes_none_near() -> None:
    """As it did when all words of the texts were compared: then matmul was near to softmax."""
    assert likeness(CPU["row_softmax"], CPU["matmul"]) == 0
    assert likeness(CPU["row_softmax"], CPU["gelu_tanh"]) == 0


def test_functions_of_the_file_are_looked_into_and_inputs_are_not() -> None:
    text = "def turn(x):\n    return torch.sin(x)\nclass Model:\n    def forward(self, x):\n"
    text += "        return turn(x) @ x\ndef get_inputs():\n    return [torch.randperm(4)]\n"
    assert operations(text) == {"sin": 1, "matmul": 1}


def test_what_is_no_python_has_none() -> None:
    assert not operations("class Model(")
    assert likeness(operations(""), operations("")) == 0
