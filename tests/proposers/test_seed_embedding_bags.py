"""Kernels of our own for embedding bags: what making a seed compares with the reference."""

from __future__ import annotations

import ast

import pytest

from kernel_smith.proposers.seed import make_seed
from kernel_smith.proposers.seed.own_cpp import CppKernels

BAGS = """
import torch
from torch.nn.functional import embedding_bag

TASK = {"workloads": {"default": {}}}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sizes = (50, 5), (40, 37), (30, 300)
        self.tables = torch.nn.ParameterList(torch.randn(size) for size in sizes)

    def forward(self, ids, offsets, ends, weights, pairs):
        narrow, odd, wide = self.tables
        return (
            embedding_bag(ids, narrow, offsets, mode="mean"),
            embedding_bag(ids, odd.double(), offsets, mode="sum"),
            embedding_bag(ids.int(), wide, ends.int(), mode="mean", include_last_offset=True),
            embedding_bag(ids, wide, offsets, mode="sum", per_sample_weights=weights),
            embedding_bag(pairs, odd, mode="sum"),
        )


def get_inputs():
    ids = torch.randint(30, (90,))
    offsets = torch.tensor([0, 0, 3, 20, 20, 88])  # of empty bags, too
    ends = torch.tensor([0, 7, 7, 90])
    return [ids, offsets, ends, torch.rand(90), torch.randint(40, (6, 2))]
"""

CALL = """
assert_size_stride(table, (9, 4), {stride})
assert_size_stride(ids, (7,), (1,))
assert_size_stride(offsets, (3,), (1,))
buf0 = torch.ops.aten._embedding_bag_forward_only.default(table, ids, offsets, {rest})
buf1 = buf0[0]
assert_size_stride(buf1, (3, 4), (4, 1))
"""
TYPES = {"table": "torch.float32", "ids": "torch.int64", "offsets": "torch.int64"}


@pytest.mark.slow
def test_bags_of_all_kinds_are_the_librarys(write_task) -> None:
    own = make_seed(write_task(BAGS), "cpu").authored_candidate
    assert own is not None and own.source.count("kernels.sum_bags_") == 5
    assert "torch.ops.aten" not in own.source


@pytest.mark.parametrize(
    ("rest", "stride", "is_ours"),
    [
        ("False, 0, False", (4, 1), True),
        ("False, 0, False", (1, 9), False),
        ("False, 2, False", (4, 1), False),
        ("False, 0, False, None, False, 3", (4, 1), False),
    ],
)
def test_bags_that_have_no_kernel_of_ours_stay_with_the_library(
    rest: str, stride: tuple[int, int], is_ours: bool
) -> None:
    """A table of columns, the largest of a bag, ids that do not count."""
    body = ast.parse(CALL.format(rest=rest, stride=stride)).body
    replaced = CppKernels(body, TYPES).replace(body[3], lambda argument: argument)
    assert (replaced is not None) == is_ours
