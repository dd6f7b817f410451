"""A candidate that passes, to which the tests add one thing at a time."""

import pytest

from kernel_smith.evaluation.screen import screen
from kernel_smith.records import Reason

HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F
from kernel_smith.inline import cpp

SOURCE = r'''
extern "C" void twice(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
}
'''
kernels = cpp(SOURCE)
"""

MODEL = """
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.twice(x, y, x.numel())
        return y
"""


@pytest.fixture
def candidate():
    """Text of a good candidate with some lines before, and some in, its model."""

    def build(extra: str = "", *, model: str = MODEL) -> str:
        return f"{HEAD}\n{extra}\n{model}"

    return build


@pytest.fixture
def reasons(candidate):
    """Why a candidate with these lines is refused, the decisive reason first."""

    def find(extra: str = "", *, model: str = MODEL) -> list[Reason]:
        return [finding.reason for finding in screen(candidate(extra, model=model))]

    return find
