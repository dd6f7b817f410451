"""The suite of operators that chips are brought up with: 45 tasks, each with starting kernels."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Options, Task
from kernel_smith.tasks import builtin_tasks

TASKS = builtin_tasks("maca")
# A few here; `benchmarks/conformance.py` tries all of them.
TRIED = (("bias_gelu_tanh", "cuda"), ("cross_entropy_rows", "maca"), ("variance_last", "hip"))


def test_families() -> None:
    families = Counter(task.family for task in TASKS)
    assert families == {"activation": 15, "norm": 8, "reduction": 17, "loss": 5}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_task_has_starting_kernels_and_a_small_workload(task: Task) -> None:
    assert {"cuda", "maca", "hip"} <= task.starts.keys()
    assert {workload.name for workload in task.workloads} == {"small", "large", "half", "odd"}


def test_kernels_for_waves_of_64_do_not_count_on_32() -> None:
    for task, backend in itertools.product(TASKS, ("maca", "hip")):
        text = Path(task.starts[backend]).read_text()
        assert "0xffffffffu" not in text and "0xffffffff," not in text, task.name
        assert "cuda" not in text, task.name


def test_hip_says_what_maca_does() -> None:
    """A mended kernel is to be mended in both."""
    names = (
        ("inline import maca", "inline import hip"),
        ("kernels = maca(", "kernels = hip("),
        ("<mc_runtime.h>", "<hip/hip_runtime.h>"),
        ("<common/maca_bfloat16.h>", "<hip/hip_bf16.h>"),
        ("<common/maca_fp16.h>", "<hip/hip_fp16.h>"),
        ("__maca_bfloat16", "__hip_bfloat16"),
        ("mcStream_t", "hipStream_t"),
        ("__shfl_xor_sync(0xffffffffffffffffull, ", "__shfl_xor("),
    )
    for task in TASKS:
        text = Path(task.starts["maca"]).read_text()
        for maca, hip in names:
            text = text.replace(maca, hip)
        assert text == Path(task.starts["hip"]).read_text(), task.name


@pytest.mark.parametrize(("name", "backend"), TRIED)
def test_starting_kernels_are_right_as_emulated(
    engine: LocalEngine, name: str, backend: str
) -> None:
    task = next(task for task in TASKS if task.name == name)
    source = Path(task.starts[backend]).read_text()
    candidate = Candidate(source=source, backend=backend, name=f"{name}.py")
    evaluation = engine.evaluate(task, candidate, Options(seeds=1))
    assert evaluation.ok, (evaluation.message, evaluation.log)
    assert evaluation.interpreted
    assert evaluation.conformance == (backend != "cuda")


def test_a_kernel_that_counts_on_warps_of_32_is_caught(engine: LocalEngine) -> None:
    """CUDA's starting kernel with MACA's names: its sums over a warp miss half of a wave."""
    task = next(task for task in TASKS if task.name == "rms_norm_rows")
    source = Path(task.starts["cuda"]).read_text()
    for old, new in (
        ("inline import cuda", "inline import maca"),
        ("kernels = cuda(", "kernels = maca("),
        ("cuda_runtime.h", "mc_runtime.h"),
        ("cuda_bf16.h", "common/maca_bfloat16.h"),
        ("cuda_fp16.h", "common/maca_fp16.h"),
        ("cudaStream_t", "mcStream_t"),
        ("__nv_bfloat16", "__maca_bfloat16"),
    ):
        source = source.replace(old, new)
    candidate = Candidate(source=source, backend="maca", name="warps_of_32.py")
    evaluation = engine.evaluate(task, candidate, Options(seeds=1))
    assert evaluation.stage.value in ("incorrect", "runtime-error"), evaluation.message
    assert "launch aborted" in evaluation.log
