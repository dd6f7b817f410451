"""The suite for authors of backends on an NVIDIA GPU: CUDA, and MACA and HIP for conformance."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from kernel_smith.testing.backend_suite import check_backend

sys.path.insert(0, str(Path(__file__).parent.parent / "backends"))

from backend_programs import programs

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]


@pytest.mark.parametrize("dialect", ["cuda", "maca", "hip"])
def test_suite_on_a_gpu(dialect: str) -> None:
    shown = check_backend(dialect, programs(dialect))
    failed = {each.case: (each.end, each.evaluation.message) for each in shown if not each.passed}
    assert failed == {}
    assert not any(each.evaluation.interpreted for each in shown)
    assert all(each.evaluation.conformance == (dialect != "cuda") for each in shown)
    assert (shown[0].evaluation.timing is None) == (dialect != "cuda")
