"""Whether a program is a real kernel, and how much of the work its own kernels do."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import Candidate, DeviceKernel, Evaluation, KernelShare, Task
from kernel_smith.training.evidence import coverage, is_real_kernel, launches_a_kernel

TRITON = """
import triton

@triton.autotune(configs=[], key=[])
@triton.jit
def kernel(x):
    pass

class ModelNew:
    def forward(self, x):
        CALL
"""


def evaluated(task: Task, **evidence: Any) -> Evaluation:
    return made_up(task, Candidate(source="x"), 1.0).model_copy(update=evidence)


def share(origin: Any, part: float, samples: int = 50) -> KernelShare:
    return KernelShare(module=origin, origin=origin, share=part, samples=samples)


def on_device(origin: Any, part: float) -> DeviceKernel:
    return DeviceKernel(name="k", origin=origin, launches=1, share=part, seconds=1e-6)


def test_on_the_cpu_the_interpreter_does_not_count(small_task: Task) -> None:
    kernels = (share("authored", 0.3), share("library", 0.1), share("interpreter", 0.6))
    assert coverage(evaluated(small_task, kernels=kernels)) == pytest.approx(0.75)


def test_on_a_gpu_all_kernels_count(small_task: Task) -> None:
    kernels = (on_device("authored", 0.2), on_device("library", 0.7), on_device("unknown", 0.1))
    assert coverage(evaluated(small_task, device_kernels=kernels)) == pytest.approx(0.2)


def test_too_few_samples_say_nothing(small_task: Task) -> None:
    kernels = (share("authored", 0.0, 0), share("library", 0.1, 19))
    assert coverage(evaluated(small_task, kernels=kernels)) is None
    assert coverage(evaluated(small_task)) is None
    assert coverage(None) is None


@pytest.mark.parametrize(
    ("call", "real"),
    [
        ("kernel[(1,)](x)", True),
        ("other = kernel\n        other[(1,)](x)", True),
        ("kernel(x)", False),
        ("torch.relu(x)", False),
        ("table[(1,)](x)", False),
    ],
)
def test_a_triton_kernel_is_launched_with_a_grid(call: str, real: bool) -> None:
    assert launches_a_kernel(TRITON.replace("CALL", call), "triton") is real


def test_a_compiled_library_is_called(honest_source: str) -> None:
    assert launches_a_kernel(honest_source, "cpp")
    assert launches_a_kernel(honest_source.replace("cpp(", "inline.cpp("), "cpp")
    unused = honest_source.replace("kernels.shifted_relu(x, y, x.numel())", "torch.relu(x)")
    assert not launches_a_kernel(unused, "cpp")
    assert not launches_a_kernel("no python (", "cpp")


def test_what_was_seen_to_run_is_real_however_it_is_written(small_task: Task) -> None:
    seen = evaluated(small_task, device_kernels=(on_device("authored", 0.5),))
    assert is_real_kernel("x = 1", "triton", seen)
    unseen = evaluated(small_task, device_kernels=(on_device("library", 1.0),))
    assert not is_real_kernel("x = 1", "triton", unseen)
