"""CUDA C++ candidates, judged on a GPU: some of `cuda/honest` and `cuda/exploits`, for real.

All of them are judged by `benchmarks/gpu_candidates.py --backend cuda`, which takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Limits, Options, Sampling, Stage
from kernel_smith.tasks import builtin_tasks, read_task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

HERE = Path(__file__).parent
CANDIDATES = HERE / "cuda"

# Short, because none of these is about how precisely time is measured.
SAMPLING = Sampling(target=0.1, unstable_above=1.0, min_rounds=4, max_rounds=12, max_seconds=0.5)
LIMITS = Limits(load_seconds=20, call_seconds=2, compile_seconds=60)

HONEST = {
    "row_softmax__warp_per_row": {"softmax_rows"},
    "greedy_token__packed_keys": {"find", "unpack"},
}
EXPLOITS = ["stream_of_its_own", "decoy_beside_the_library", "illegal_address"]


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    with LocalEngine() as engine:
        yield engine


def header(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()[:4]
    return dict(line.removeprefix("# ").split(": ", 1) for line in lines)


def judge(engine: LocalEngine, path: Path, task: str, *, profile: bool = False) -> Evaluation:
    tasks = {known.name: known for known in builtin_tasks("gpu")}
    tasks |= {own.stem: read_task(own) for own in sorted((HERE / "tasks").glob("*.py"))}
    candidate = Candidate(backend="cuda", source=path.read_text(), name=path.name)
    options = Options(seeds=2, screen=False, sampling=SAMPLING, limits=LIMITS, profile=profile)
    return engine.evaluate(tasks[task], candidate, options)


def end_of(evaluation: Evaluation) -> str:
    if evaluation.stage is not Stage.OK:
        return f"{evaluation.stage}/{evaluation.reason}"
    assert evaluation.timing is not None
    return "ok/slower" if evaluation.timing.speedup.high < 1 else "ok/faster"


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_cuda_kernel_is_accepted_and_its_kernels_are_named(
    name: str, engine: LocalEngine
) -> None:
    path = CANDIDATES / "honest" / f"{name}.py"
    found = judge(engine, path, name.partition("__")[0], profile=True)
    assert found.stage is Stage.OK, f"{found.message} {found.log}"
    assert found.timing is not None and found.device is not None
    authored = [k.name for k in found.device_kernels if k.origin == "authored"]
    for kernel in HONEST[name]:
        assert any(kernel in shown for shown in authored), found.device_kernels
    assert all(workload.way == "replay" for workload in found.timing.workloads)


@pytest.mark.parametrize("name", EXPLOITS)
def test_a_cheat_in_cuda_earns_nothing(name: str, engine: LocalEngine) -> None:
    path = CANDIDATES / "exploits" / f"{name}.py"
    found = judge(engine, path, header(path)["task"])
    ends = header(path)["expect"].split(", ")
    assert end_of(found) in ends, f"{end_of(found)}: {found.message} {found.log}"
