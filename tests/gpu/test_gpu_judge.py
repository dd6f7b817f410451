"""The judge on a GPU, from end to end: evidence, baselines, precision, and lonely faults."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.nsight import find_ncu, profile_candidate
from kernel_smith.records import Candidate, Evaluation, Limits, Options, Reason, Sampling, Stage
from kernel_smith.records.prose import render
from kernel_smith.tasks import read_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

SAMPLING = Sampling(target=0.05, unstable_above=1.0, min_rounds=4, max_rounds=12, max_seconds=1.0)
OPTIONS = Options(seeds=2, sampling=SAMPLING, profile=False)
LEAK_BYTES = 1 << 30
PATIENCE = 10.0

TASK = """
import torch

TASK = {"precision": "PRECISION", "workloads": {"one": {"rows": 2048}}}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(512, 512) / 16)

    def forward(self, x):
        return torch.relu(x @ self.weight)


def get_inputs(rows):
    return [torch.randn(rows, 512)]
"""

PROGRAM = """
import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(x, w, y, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, 512, 32):
        inner = k + tl.arange(0, 32)
        a = tl.load(x + rows[:, None] * 512 + inner[None, :])
        b = tl.load(w + inner[:, None] * 512 + columns[None, :])
        total = tl.dot(a, b, total, input_precision="PRECISION")
    tl.store(y + rows[:, None] * 512 + columns[None, :], tl.maximum(total, 0.0))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(512, 512) / 16)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        product_kernel[(x.shape[0] // 64, 8)](x, self.weight, y, BLOCK=64)
        return y
"""
EXACT = PROGRAM.replace("PRECISION", "ieee")
FAULTS = {
    "illegal access": (
        EXACT.replace("tl.store(y +", "tl.store(y + 100000000000 +"),
        {Reason.EXCEPTION, Reason.CRASHED},
    ),
    "hang": (
        EXACT.replace(
            "    tl.store(",
            "    while tl.load(x, volatile=True) < 1e30:\n        pass\n    tl.store(",
        ),
        {Reason.CALL_TIMEOUT},
    ),
    "out of memory": (
        EXACT.replace(
            "        return y", "        torch.empty(1 << 40, device=x.device)\n        return y"
        ),
        {Reason.MEMORY_LIMIT},
    ),
    "exception": (
        EXACT.replace("        return y", "        raise ValueError('no')"),
        {Reason.EXCEPTION},
    ),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    with LocalEngine() as engine:
        yield engine


def judge(
    engine: LocalEngine,
    folder: Path,
    source: str,
    options: Options = OPTIONS,
    precision: str = "strict",
    beside: str | None = None,
) -> Evaluation:
    path = folder / "product.py"
    path.write_text(TASK.replace("PRECISION", precision))
    candidate = Candidate(backend="triton", source=source, name="mine.py")
    other = Candidate(backend="triton", source=beside) if beside is not None else None
    return engine.evaluate(read_task(path), candidate, options, beside=other)


def test_an_accepted_kernel_comes_with_all_of_its_evidence(
    engine: LocalEngine, tmp_path: Path
) -> None:
    options = OPTIONS.model_copy(update={"profile": True})
    found = judge(engine, tmp_path, EXACT, options)
    assert found.stage is Stage.OK, f"{found.message} {found.log}"
    assert found.device is not None and found.ceilings is not None and found.timing is not None
    assert [kernel.name for kernel in found.device_kernels] == ["product_kernel"]
    assert found.device_kernels[0].origin == "authored"
    assert found.device_kernels[0].registers
    assert found.timing.workloads[0].way == "replay"
    assert found.timing.workloads[0].plain_p50 is not None
    by_events = found.timing.workloads[0].inner_p50
    assert by_events is not None
    assert 0.8 < by_events / found.timing.workloads[0].candidate.p50 < 1.25
    assert 0 < found.rooflines[0].share < 1.2
    assert found.telemetry is not None
    assert "product_kernel" in render(found)


def test_two_kernels_are_timed_in_the_same_rounds(engine: LocalEngine, tmp_path: Path) -> None:
    found = judge(engine, tmp_path, EXACT, beside=EXACT.replace("0, 512, 32", "0, 512, 32 "))
    assert found.stage is Stage.OK, f"{found.message} {found.log}"
    assert found.beside is not None and found.beside.gain is not None, found.beside
    assert 0.8 < found.beside.gain.value < 1.25
    assert [each.workload for each in found.beside.workloads] == ["one"]


def test_what_fails_beside_a_kernel_fails_alone(engine: LocalEngine, tmp_path: Path) -> None:
    broken, _ = FAULTS["illegal access"]
    found = judge(engine, tmp_path, EXACT, beside=broken)
    assert found.stage is Stage.OK, f"{found.message} {found.log}"
    assert found.beside is not None and found.beside.gain is None
    assert found.beside.reason in {Reason.EXCEPTION, Reason.CRASHED}


def test_coarse_products_are_named_where_the_task_is_strict(
    engine: LocalEngine, tmp_path: Path
) -> None:
    coarse = PROGRAM.replace("PRECISION", "tf32")
    assert judge(engine, tmp_path, coarse).reason is Reason.PRECISION
    assert judge(engine, tmp_path, coarse, precision="tf32").stage is Stage.OK


def test_baselines_are_measured_once_and_then_known(engine: LocalEngine, tmp_path: Path) -> None:
    options = OPTIONS.model_copy(update={"baselines": ("eager", "compile", "graph")})
    first = judge(engine, tmp_path, EXACT, options)
    assert first.timing is not None, f"{first.message} {first.log}"
    assert [s.baseline for s in first.timing.speedups] == ["eager", "compile", "graph"]
    again = judge(engine, tmp_path, EXACT + "\n# again\n", options)
    assert again.timing is not None
    known = [b.seconds for b in again.timing.workloads[0].baselines if b.baseline == "compile"]
    assert known == [
        b.seconds for b in first.timing.workloads[0].baselines if b.baseline == "compile"
    ]


LONG_TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x @ x


def get_inputs():
    return [torch.randn(8192, 8192) / 64]
"""
LONG_PROGRAM = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, y, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + places, tl.load(x + places))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        product = x @ x
        y = torch.empty_like(product)
        copy_kernel[(product.numel() // 1024,)](product, y, BLOCK=1024)
        return y
"""


def test_a_reference_that_was_set_aside_is_captured_all_the_same(
    engine: LocalEngine, tmp_path: Path
) -> None:
    """Its process is a new one then, in which the library has not been called yet."""
    path = tmp_path / "long_product.py"
    path.write_text(LONG_TASK)
    task = read_task(path)
    for turn in range(2):
        source = f"{LONG_PROGRAM}\n# {turn}\n"
        found = engine.evaluate(task, Candidate(backend="triton", source=source), OPTIONS)
        assert found.timing is not None, f"{found.message} {found.log}"
        assert found.timing.workloads[0].way == "replay", found.notes
        assert judge(engine, tmp_path, f"{EXACT}\n# {turn}\n").stage is Stage.OK


def test_what_cannot_be_captured_is_timed_plainly(engine: LocalEngine, tmp_path: Path) -> None:
    asking = EXACT.replace(
        "        y = torch", "        assert x[0, 0].item() < 1e30\n        y = torch"
    )
    found = judge(engine, tmp_path, asking)
    assert found.timing is not None, f"{found.message} {found.log}"
    assert found.timing.workloads[0].way == "plain"
    assert any("no CUDA graph" in note for note in found.notes)


def test_a_kernel_that_nobody_needs_is_a_decoy(engine: LocalEngine, tmp_path: Path) -> None:
    decoy = EXACT.replace("        return y", "        return torch.relu(x @ self.weight)")
    assert judge(engine, tmp_path, decoy).reason is Reason.DECOY_KERNEL


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_its_candidate_alone(fault: str, engine: LocalEngine, tmp_path: Path) -> None:
    source, reasons = FAULTS[fault]
    limits = Limits(call_seconds=2)
    before = judge(engine, tmp_path, f"{EXACT}\n# before {fault}\n")
    free, _ = torch.cuda.mem_get_info()
    failed = judge(engine, tmp_path, source, OPTIONS.model_copy(update={"limits": limits}))
    assert failed.reason in reasons, f"{failed.stage} {failed.reason} {failed.message}"
    after = judge(engine, tmp_path, f"{EXACT}\n# after {fault}\n")
    assert before.stage is after.stage is Stage.OK
    # Processes that wait for the next candidate come and go.
    deadline = time.monotonic() + PATIENCE
    while free - torch.cuda.mem_get_info()[0] > LEAK_BYTES and time.monotonic() < deadline:
        time.sleep(0.2)
    assert free - torch.cuda.mem_get_info()[0] <= LEAK_BYTES


def test_nsight_compute_sees_the_kernel_that_was_written(tmp_path: Path) -> None:
    if find_ncu() is None:
        pytest.skip("needs Nsight Compute")
    path = tmp_path / "product.py"
    path.write_text(TASK.replace("PRECISION", "strict"))
    candidate = Candidate(backend="triton", source=EXACT, name="mine.py")
    (kernel,) = profile_candidate(read_task(path), candidate)
    assert kernel.name == "product_kernel"
    assert kernel.seconds is not None and kernel.seconds > 0
    assert kernel.compute_share is not None and 0 < kernel.compute_share <= 1
    assert kernel.waits_for
