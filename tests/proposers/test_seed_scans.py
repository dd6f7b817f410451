"""Kernels of our own for running sums and products: what making a seed compares with theirs."""

from __future__ import annotations

import ast

import pytest

from kernel_smith.proposers.seed import make_seed
from kernel_smith.proposers.seed.own_cpp import CppKernels

SUMS = """
import torch

TASK = {"workloads": {"default": {}}}


class Model(torch.nn.Module):
    def forward(self, rows, images, long):
        return (
            rows.cumsum(1),
            rows.cumsum(0),
            images.double().cumsum(2),
            images.cumsum(-1).cumsum(0),
            long.cumsum(0),
            rows.cumprod(1),
            (images * 2).cumprod(0),
        )


def get_inputs():
    return [torch.randn(29, 70), torch.randn(3, 2, 5, 6), torch.randn(5000)]
"""

CALL = """
assert_size_stride(x, (9, 4), {stride})
buf0 = torch.ops.aten.cumsum.default(x, dim={axis}, dtype={dtype})
buf1 = buf0
"""


@pytest.mark.slow
def test_running_sums_of_all_kinds_are_the_librarys(write_task) -> None:
    own = make_seed(write_task(SUMS), "cpu").authored_candidate
    assert own is not None and own.source.count("kernels.sum_along_") == 6
    assert own.source.count("kernels.multiply_along_") == 2
    assert "torch.ops.aten" not in own.source


@pytest.mark.parametrize(
    ("stride", "axis", "dtype", "of", "sizes"),
    [
        ((4, 1), -1, None, "float32", "9, 4, 1"),
        ((4, 1), 0, None, "float64", "1, 9, 4"),
        ((1, 9), 0, None, "float32", ""),
        ((4, 1), 0, "torch.float64", "float32", ""),
        ((4, 1), 0, None, "int32", ""),
        ((4, 1), 0, None, "bfloat16", ""),
    ],
)
def test_what_has_no_kernel_of_ours_stays_with_the_library(
    stride: tuple[int, int], axis: int, dtype: str | None, of: str, sizes: str
) -> None:
    """Rows, columns, a transposed matrix, another type of the result, types that sum in others."""
    body = ast.parse(CALL.format(stride=stride, axis=axis, dtype=dtype)).body
    kernels = CppKernels(body, {"x": f"torch.{of}"})
    replaced = kernels.replace(body[1], lambda argument: argument)
    assert (replaced is not None) == bool(sizes)
    assert all(
        f"Scan<{'double' if '64' in of else 'float'}, {sizes}>" in text
        for text in kernels.texts.values()
    )
