"""The kind of a problem, from the operations of its reference."""

from __future__ import annotations

import pytest

from kernel_smith.bench.categories import CATEGORIES, category
from kernel_smith.tasks import SUITES, builtin_tasks

MODEL = """
import torch
import torch.nn as nn
import torch.nn.functional as F

size = 4 * 1024 - 1

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        {made}

    def forward(self, x, y=None):
        return {computed}

def get_inputs():
    return [torch.softmax(torch.randn(size), 0)]
"""


def kind(computed: str, made: str = "pass") -> str:
    return category(MODEL.format(made=made, computed=computed))


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        ("torch.matmul(x, y)", "product"),
        ("x @ y", "product"),
        ("F.relu(x @ y) * 2", "product, fused"),
        ("F.conv2d(x, y)", "convolution"),
        ("F.softmax(x @ y, -1) @ y", "attention"),
        ("F.scaled_dot_product_attention(x, y, y)", "attention"),
        ("F.layer_norm(x, [4]) + y", "normalisation"),
        ("torch.softmax(x, -1)", "softmax"),
        ("F.max_pool2d(x, 2)", "pooling"),
        ("torch.cumsum(x, 1)", "scan"),
        ("x.argmax(1)", "search"),
        ("x.sum(1)", "reduction"),
        ("torch.relu(x)", "activation"),
        ("F.mse_loss(x, y)", "loss"),
        ("x.gather(1, y)", "indexing"),
        ("(x / y).to(torch.float8_e4m3fn)", "quantisation"),
        ("torch.cat([x, y])", "layout"),
        ("x * y + 1", "arithmetic"),
        ("torch.cumsum(x @ y, 1) @ y", "state space"),
        ("x", "other"),
    ],
)
def test_what_is_computed_names_it(computed: str, expected: str) -> None:
    """Neither sizes nor how inputs are drawn do."""
    assert kind(computed) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("self.conv = nn.Conv2d(n, 8, 3)", "convolution"),
        ("self.conv = nn.Conv2d(n, n, 3, groups=n)", "depthwise convolution"),
        ("self.conv = nn.Conv2d(n, 2 * n, 3, groups=2)", "convolution"),
        ("self.conv = nn.ConvTranspose2d(n, 8, 3)", "transposed convolution"),
        ("self.a, self.b = nn.Conv2d(n, 8, 3), nn.BatchNorm2d(8)", "convolution, fused"),
        ("self.cell = nn.LSTM(n, 8)", "recurrent network"),
        (
            "self.layers = nn.ModuleList([nn.Linear(n, n) for _ in range(9)] + [nn.Linear(n, 1)])",
            "network",
        ),
        ("self.scale = torch.randn(n * 2) + 1", "other"),
    ],
)
def test_what_is_made_names_it_too(made: str, expected: str) -> None:
    """Parameters that are drawn in a constructor are none of it."""
    assert kind("self.conv(x)", made) == expected


def test_there_are_many_and_every_builtin_task_has_one() -> None:
    found = {category(task.source) for suite in SUITES for task in builtin_tasks(suite)}
    assert found <= set(CATEGORIES)
    assert len(found) >= 15


@pytest.mark.parametrize("source", ["", "class Model(:", "\0", "(" * 500])
def test_a_text_that_is_no_program_has_none(source: str) -> None:
    assert category(source) == "other"
