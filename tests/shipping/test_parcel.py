"""What is shipped to a maintainer: a package whose own tests pass, and an honest text."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm
from warm_seeds import Seeds

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import Accuracy, Candidate
from kernel_smith.shipping.found import Optimized
from kernel_smith.shipping.live import live_task, read_calls
from kernel_smith.shipping.parcel import pack


def optimized(kernel: str = NORM_KERNEL, *, confirmed: bool = True) -> Optimized:
    """A kernel that is real, with figures that are not."""
    module = RMSNorm()
    task = live_task(module, read_calls(module, torch.randn(8, WIDTH)))
    candidate = Candidate(backend="cpp", source=kernel)
    accuracy = Accuracy(candidate_error=1e-7, reference_error=1e-7, allowed_error=1e-5)
    evaluation = made_up(task, candidate, 2.0, baselines=("eager", "compile")).model_copy(
        update={"made_up": False, "accuracy": accuracy}
    )
    return Optimized("run-1", task, candidate, evaluation, "it ended", confirmed, module)


@pytest.mark.slow
def test_shipped_tests_pass_and_notice_a_wrong_kernel(tmp_path: Path, warm_seeds: Seeds) -> None:
    pack(optimized(), (), tmp_path, "right_norm")
    pack(optimized(NORM_KERNEL.replace("+ epsilon", "+ 1")), (), tmp_path, "wrong_norm")
    noticing = "tests/test_wrong_norm.py::test_verified_calls_take_the_kernel"
    arguments = ["-rA", "-p", "no:cacheprovider", "tests/test_right_norm.py", noticing]
    said = warm_seeds.run_pytest(arguments, tmp_path)
    assert said.count("PASSED tests/test_right_norm.py") == 9, said
    assert f"FAILED {noticing}" in said
    assert "FAILED tests/test_right_norm.py" not in said


def test_the_text_says_what_was_shown(tmp_path: Path) -> None:
    pack(optimized(), (), tmp_path, "fast_norm")
    text = (tmp_path / "PULL_REQUEST.md").read_text("utf-8")
    for words in ("| default | compile |", "run `run-1` (it ended)", "allowed: 1e-05"):
        assert words in text
    assert "Not confirmed" not in text
    pack(optimized(confirmed=False), (), tmp_path, "fast_norm")
    assert "**Not confirmed**" in (tmp_path / "PULL_REQUEST.md").read_text("utf-8")


def test_names_that_cannot_be_imported_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'fast-norm' is no name"):
        pack(optimized(), (), tmp_path, "fast-norm")
    assert not list(tmp_path.iterdir())
