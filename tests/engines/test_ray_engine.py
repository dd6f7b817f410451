"""A Ray cluster as an engine: the verdicts of this machine, from nodes that come and go."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

pytest.importorskip("ray")

from one_run import assert_a_run_succeeds
from ray_nodes import LONG, Nodes, nodes, until

from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite
from kernel_smith.evaluation.engines import LocalEngine, open_engine
from kernel_smith.evaluation.engines.ray_engine import RayEngine
from kernel_smith.records import Candidate, Options, Reason, Task

WriteTask = Callable[..., Task]

TELLING = """
import os
import torch

names = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
raise KeyError(" ".join(f"{name}={os.environ.get(name)}" for name in names))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""


@pytest.fixture(scope="module")
def cluster(object_cache: Path) -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch, nodes() as made:
        patch.setenv("KERNEL_SMITH_CACHE", str(object_cache))  # which nodes inherit
        patch.delenv("OMP_NUM_THREADS", raising=False)
        made.add("steady", num_gpus=1)  # which is not there, but Ray believes it
        yield made


def simulated(cluster: Nodes, seconds: float, kind: str = "steady") -> RayEngine:
    return RayEngine(cluster.address, device=kind, on_node=f"simulated:1:{seconds}")


def numbered(number: int) -> Candidate:
    return Candidate(source=f"class ModelNew: number = {number}")


def test_verdicts_errors_and_a_whole_run_are_as_with_a_judge_on_this_machine(
    cluster: Nodes,
    engine: LocalEngine,
    small_task: Task,
    write_task: WriteTask,
    honest_source: str,
    wrong_source: str,
    quick: Options,
    tmp_path: Path,
) -> None:
    sources = [honest_source, wrong_source, "not even Python"]
    candidates = [Candidate(source=source) for source in sources]
    bad_task = write_task(small_task.source.replace("[torch.randn(32, 64)]", "[1 / 0]"), "bad")
    unscreened = quick.model_copy(update={"screen": False})
    with open_engine(f"{cluster.address}?device=steady") as ray:
        futures = [ray.submit(small_task, candidate, quick) for candidate in candidates]
        telling = ray.submit(small_task, Candidate(source=TELLING), unscreened)
        bad = ray.submit(bad_task, candidates[0], quick)
        found = [future.result(LONG) for future in futures]
        with pytest.raises(BadInput, match="division by zero") as refused:
            bad.result(LONG)
        assert refused.value.hint
        # Ray sets the first to 1 for its own processes; the second is the GPU that it assigned.
        told = telling.result(LONG).message or ""
        assert "OMP_NUM_THREADS=None CUDA_VISIBLE_DEVICES=0" in told
        assert_a_run_succeeds(ray, small_task, honest_source, quick, tmp_path)
    expected = [engine.evaluate(small_task, candidate, quick) for candidate in candidates]
    assert [(e.stage, e.reason) for e in found] == [(e.stage, e.reason) for e in expected]
    assert [e.reason for e in found][:2] == [None, Reason.WRONG_VALUES]
    assert found[0].timing is not None


def test_a_node_that_joins_is_used_and_when_it_dies_no_job_is_lost(
    cluster: Nodes, small_task: Task, errors_logged: list[logging.LogRecord]
) -> None:
    first = cluster.add("moody")
    address, on_node = cluster.address, "simulated:2:0.6"
    with RayEngine(address, device="moody", lanes=2, on_node=on_node) as engine:
        assert engine.capacity() == 2
        second = cluster.add("moody")
        until(lambda: engine.capacity() == 4)
        candidates = [numbered(number) for number in range(12)]
        futures = [engine.submit(small_task, candidate) for candidate in candidates]
        until(lambda: engine.health()["busy"] == 4 and any(f.done() for f in futures))
        cluster.kill(first)
        found = [future.result(LONG) for future in futures]
        assert [e.candidate_hash for e in found] == [c.content_hash for c in candidates]
        assert engine.health()["sent_again"] >= 1
        until(lambda: engine.capacity() == 2)

        begun = [engine.submit(small_task, numbered(number)) for number in (12, 13)]
        until(lambda: all(future.running() for future in begun))
        cluster.kill(second)
        engine.close()  # does not wait for a device that will not come
        assert all(future.done() for future in begun)
    # Answering a future twice would be told here.
    assert not errors_logged


def test_a_node_that_lacks_the_package_is_told_of_and_not_used(
    cluster: Nodes, small_task: Task, tmp_path: Path
) -> None:
    empty = tmp_path / "kernel_smith"
    empty.mkdir()
    (empty / "__init__.py").touch()
    cluster.add("bare", env_vars={"PYTHONPATH": str(tmp_path)})
    with pytest.raises(MissingPrerequisite, match="cannot be imported on the Ray node") as told:
        simulated(cluster, 0.0, "bare")
    assert "pip install" in told.value.hint
    with RayEngine(cluster.address, on_node="simulated:1:0") as engine:
        until(lambda: bool(engine.health()["unfit"]))
        assert engine.health()["ready"]
        engine.submit(small_task, numbered(0)).result(LONG)


def test_a_kind_of_device_that_no_node_has_is_told_of(cluster: Nodes) -> None:
    with pytest.raises(MissingPrerequisite, match="no device with 'H100'"):
        open_engine(f"{cluster.address}?device=H100")


def test_what_waits_can_be_cancelled_and_closing_finishes_what_was_begun(
    cluster: Nodes, small_task: Task
) -> None:
    with simulated(cluster, 0.5) as engine:
        begun, cancelled, waiting = (engine.submit(small_task, numbered(n)) for n in range(3))
        until(begun.running)
        assert cancelled.cancel()
        assert not begun.cancel()
        engine.close()
        assert begun.result(0).candidate_hash == numbered(0).content_hash
        with pytest.raises(CancelledError):
            waiting.result(0)
        with pytest.raises(RuntimeError, match="closed"):
            engine.submit(small_task, numbered(3))
        assert not engine.health()["ready"]


def test_whoever_leaves_in_a_hurry_does_not_wait(cluster: Nodes, small_task: Task) -> None:
    with contextlib.suppress(KeyboardInterrupt), simulated(cluster, 10 * LONG) as engine:
        begun, waiting = (engine.submit(small_task, numbered(n)) for n in range(2))
        until(begun.running)
        raise KeyboardInterrupt
    with pytest.raises(InternalError, match="closed"):
        begun.result(0)
    assert waiting.cancelled()
