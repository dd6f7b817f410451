"""Evaluations on disk: found again, told apart, and never in the way."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.evaluation.engines import EvaluationCache
from kernel_smith.evaluation.sandbox.confine import devices
from kernel_smith.evaluation.sandbox.confine.devices import Gpus
from kernel_smith.records import (
    MEANINGS,
    Admission,
    Candidate,
    Environment,
    Evaluation,
    Options,
    Reason,
    Sampling,
    Task,
    WorstElement,
)

TASK = Task(name="t", source="pass")
CANDIDATE = Candidate(source="pass")
OPTIONS = Options()
ENVIRONMENT = Environment(**dict.fromkeys(Environment.model_fields, "x"))


def evaluation(reason: Reason = Reason.WRONG_VALUES, **changes: Any) -> Evaluation:
    return Evaluation(
        task="t",
        task_hash=TASK.content_hash,
        candidate_hash=CANDIDATE.content_hash,
        backend="cpp",
        stage=MEANINGS[reason].stage,
        reason=reason,
        environment=ENVIRONMENT,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        **changes,
    )


def test_an_evaluation_is_found_again(tmp_path: Path) -> None:
    cache = EvaluationCache(tmp_path)
    assert cache.get(TASK, CANDIDATE, OPTIONS) is None
    cache.put(TASK, CANDIDATE, OPTIONS, evaluation())
    assert cache.get(TASK, CANDIDATE, OPTIONS) == evaluation()
    assert EvaluationCache(tmp_path).get(TASK, CANDIDATE, OPTIONS) == evaluation()


def test_an_element_that_is_not_a_number_does_not_spoil_the_entry(tmp_path: Path) -> None:
    worst = WorstElement(
        workload="w",
        inputs="author",
        output=0,
        index=(1,),
        got=float("nan"),
        expected=1.0,
        allowed=1e-5,
    )
    cache = EvaluationCache(tmp_path)
    stored = evaluation(Reason.NON_FINITE, worst=worst)
    cache.put(TASK, CANDIDATE, OPTIONS, stored)
    assert cache.get(TASK, CANDIDATE, OPTIONS) == stored


@pytest.mark.parametrize(
    ("task", "candidate", "options"),
    [
        (TASK.model_copy(update={"source": "other"}), CANDIDATE, OPTIONS),
        (TASK, CANDIDATE.model_copy(update={"source": "other"}), OPTIONS),
        (TASK, CANDIDATE.model_copy(update={"backend": "other"}), OPTIONS),
        (TASK, CANDIDATE, OPTIONS.model_copy(update={"seeds": 9})),
        (TASK, CANDIDATE, OPTIONS.model_copy(update={"screen": False})),
        (TASK, CANDIDATE, OPTIONS.model_copy(update={"interpret": True})),
        (TASK, CANDIDATE, OPTIONS.model_copy(update={"cores": (1,)})),
        (TASK, CANDIDATE, OPTIONS.model_copy(update={"baselines": ("compile",)})),
        (TASK, CANDIDATE, OPTIONS.model_copy(update={"sampling": Sampling(target=0.2)})),
        (TASK, CANDIDATE, OPTIONS.model_copy(update={"admit": (Admission.NON_FINITE,)})),
    ],
)
def test_whatever_could_change_the_answer_is_part_of_the_key(
    tmp_path: Path, task: Task, candidate: Candidate, options: Options
) -> None:
    cache = EvaluationCache(tmp_path)
    cache.put(TASK, CANDIDATE, OPTIONS, evaluation())
    assert cache.get(task, candidate, options) is None


def test_another_machine_or_release_does_not_share_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = EvaluationCache(tmp_path)
    cache.put(TASK, CANDIDATE, OPTIONS, evaluation())
    module = "kernel_smith.evaluation.engines.cache"
    with monkeypatch.context() as patch:
        patch.setattr(f"{module}.platform.node", lambda: "elsewhere")
        assert cache.get(TASK, CANDIDATE, OPTIONS) is None
    with monkeypatch.context() as patch:
        patch.setattr(f"{module}.version", lambda name: "99")
        assert cache.get(TASK, CANDIDATE, OPTIONS) is None
    assert cache.get(TASK, CANDIDATE, OPTIONS) is not None


H200 = Gpus(names=("NVIDIA H200",), driver="580.1")


@pytest.mark.parametrize(
    "other",
    [
        Gpus(names=(), driver=None),
        Gpus(names=(), driver="580.1"),
        Gpus(names=("NVIDIA H100",), driver="580.1"),
        Gpus(names=("NVIDIA H200", "NVIDIA H200"), driver="580.1"),
        Gpus(names=("NVIDIA H200",), driver="590.2"),
    ],
)
def test_another_gpu_or_driver_does_not_share_answers_about_kernels_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Gpus
) -> None:
    cache = EvaluationCache(tmp_path)
    triton = CANDIDATE.model_copy(update={"backend": "triton"})
    monkeypatch.setattr(devices, "gpus", lambda: H200)
    for candidate in (CANDIDATE, triton):
        cache.put(TASK, candidate, OPTIONS, evaluation())
        assert cache.get(TASK, candidate, OPTIONS) is not None
    monkeypatch.setattr(devices, "gpus", lambda: other)
    assert cache.get(TASK, triton, OPTIONS) is None
    assert cache.get(TASK, CANDIDATE, OPTIONS) is not None, "C++ kernels run on the CPU"


def test_a_gpu_that_is_hidden_does_not_share_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = EvaluationCache(tmp_path)
    triton = CANDIDATE.model_copy(update={"backend": "triton"})
    monkeypatch.setattr(devices, "gpus", lambda: H200)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    cache.put(TASK, triton, OPTIONS, evaluation())
    assert cache.get(TASK, triton, OPTIONS) is not None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert cache.get(TASK, triton, OPTIONS) is None


def test_names_and_places_of_files_are_not_part_of_the_key(tmp_path: Path) -> None:
    cache = EvaluationCache(tmp_path)
    cache.put(TASK, CANDIDATE, OPTIONS, evaluation())
    moved = TASK.model_copy(update={"path": "/elsewhere/t.py"})
    renamed = CANDIDATE.model_copy(update={"name": "other.py"})
    assert cache.get(moved, renamed, OPTIONS) is not None


@pytest.mark.parametrize("reason", [Reason.TOO_NOISY, Reason.LOAD_TIMEOUT, Reason.CALL_TIMEOUT])
def test_what_might_end_differently_next_time_is_not_kept(tmp_path: Path, reason: Reason) -> None:
    cache = EvaluationCache(tmp_path)
    cache.put(TASK, CANDIDATE, OPTIONS, evaluation(reason))
    assert cache.get(TASK, CANDIDATE, OPTIONS) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"null", b'{"stage": "ok"}'])
def test_a_damaged_entry_is_a_miss_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    cache = EvaluationCache(tmp_path)
    cache.put(TASK, CANDIDATE, OPTIONS, evaluation())
    (entry,) = tmp_path.rglob("*.json")
    entry.write_bytes(content)
    assert cache.get(TASK, CANDIDATE, OPTIONS) is None
    cache.put(TASK, CANDIDATE, OPTIONS, evaluation())
    assert cache.get(TASK, CANDIDATE, OPTIONS) == evaluation()


def test_a_folder_that_cannot_be_written_costs_the_cache_alone(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = EvaluationCache(blocked)
    cache.put(TASK, CANDIDATE, OPTIONS, evaluation())
    assert cache.get(TASK, CANDIDATE, OPTIONS) is None


def test_nothing_but_finished_entries_is_left_behind(tmp_path: Path) -> None:
    cache = EvaluationCache(tmp_path)
    for _ in range(3):
        cache.put(TASK, CANDIDATE, OPTIONS, evaluation())
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]


def test_the_cache_lies_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(tmp_path / "chosen"))
    EvaluationCache().put(TASK, CANDIDATE, OPTIONS, evaluation())
    assert list((tmp_path / "chosen").rglob("*.json"))
