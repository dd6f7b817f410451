"""Means over large windows, which the compiler would leave to the library."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from interpreted import Interpreter

from kernel_smith.proposers.seed import make_seed

POOLS = """
import torch
from torch.nn.functional import avg_pool2d, avg_pool3d

TASK = {"workloads": {"default": {}}}


class Model(torch.nn.Module):
    def forward(self, volume, image):
        return (
            avg_pool3d(volume, 3, stride=2, padding=1),
            avg_pool3d(volume, (5, 4, 3), (1, 2, 3), (2, 1, 0), count_include_pad=False),
            avg_pool3d(volume[0], (1, 6, 5), stride=1),
            avg_pool2d(image, 7, stride=3, padding=3, count_include_pad=False),
            avg_pool2d(image[0], (6, 7), stride=(6, 5), padding=(0, 2)),
        )


def get_inputs():
    return [torch.randn(2, 3, 9, 10, 11), torch.randn(2, 3, 17, 19)]
"""


@pytest.mark.slow
def test_means_over_large_windows_are_kernels_and_right(write_task) -> None:
    """Which making a seed finds out."""
    seed = make_seed(write_task(POOLS), "cpu")
    assert seed.library_calls == ()
    assert seed.compared == {"default": 1.0}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_for_a_gpu_they_are_kernels_as_well(
    write_task, interpreter: Interpreter, tmp_path: Path
) -> None:
    task = write_task(POOLS)
    seed = make_seed(task, "cuda")
    assert seed.library_calls == ()
    assert interpreter.compare(task, seed.source, tmp_path) == "5 agree"
