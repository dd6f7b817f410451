"""Records come back from JSON as they went in, and are identified by their content."""

from __future__ import annotations

import json
import math
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernel_smith.records import (
    MAX_SOURCE,
    MEANINGS,
    Accuracy,
    Admission,
    BaselineSpeedup,
    BaselineTiming,
    Candidate,
    Confinement,
    Diagnostic,
    Distribution,
    Environment,
    ErrorBin,
    Evaluation,
    Finding,
    Interval,
    KernelShare,
    Limits,
    Options,
    Precision,
    Reason,
    Record,
    Sampling,
    Stage,
    Task,
    Timing,
    Tolerance,
    Variant,
    Workload,
    WorkloadTiming,
    WorstElement,
    content_hash,
)
from kernel_smith.tasks import read_task

TASK_FILE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x

def get_inputs():
    return [torch.randn(3)]
"""

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
at_least_zero = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
whole = st.integers(0, 2**53)


def tuples_of(items: st.SearchStrategy[Any], smallest: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(items, min_size=smallest, max_size=3).map(tuple)


params = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | finite | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=4,
)
workloads = st.builds(
    Workload,
    name=st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,8}\Z"),
    params=st.dictionaries(text, params, max_size=3),
    weight=positive,
)
tasks = st.builds(
    Task,
    name=text.filter(bool),
    source=text,
    path=st.none() | text,
    family=text,
    description=text,
    precision=st.sampled_from(Precision),
    tolerance=st.none() | st.builds(Tolerance, rtol=at_least_zero, atol=at_least_zero),
    workloads=st.lists(workloads, min_size=1, max_size=3, unique_by=lambda w: w.name).map(tuple),
    variants=tuples_of(st.sampled_from(Variant)),
    library_calls=st.booleans(),
    admit=tuples_of(st.sampled_from(Admission)),
    starts=st.dictionaries(text, text, max_size=2),
)
candidates = st.builds(Candidate, backend=text, source=text, name=text)
options = st.builds(
    Options,
    seeds=st.integers(1, 9),
    baselines=tuples_of(st.sampled_from(["eager", "compile"]), 1),
    screen=st.booleans(),
    admit=tuples_of(st.sampled_from(Admission)),
    sampling=st.builds(Sampling, target=positive, max_rounds=st.integers(2, 999)),
    limits=st.builds(Limits, call_seconds=positive, memory_bytes=st.integers(1, 2**40)),
    cores=st.none() | tuples_of(st.integers(0, 255)),
)
intervals = st.builds(Interval, value=positive, low=finite, high=finite)
distributions = st.builds(Distribution, p50=positive, p99=positive)
timings = st.builds(
    Timing,
    speedups=tuples_of(st.builds(BaselineSpeedup, baseline=text, speedup=intervals), 1),
    workloads=tuples_of(
        st.builds(
            WorkloadTiming,
            workload=text,
            weight=positive,
            candidate=distributions,
            baselines=tuples_of(
                st.builds(BaselineTiming, baseline=text, speedup=intervals, seconds=distributions),
                1,
            ),
            rounds=whole,
            calls=whole,
            inner_p50=st.none() | positive,
        ),
        1,
    ),
    cores=tuples_of(st.integers(0, 255)),
)
accuracies = st.builds(
    Accuracy,
    candidate_error=st.none() | at_least_zero,
    reference_error=at_least_zero,
    allowed_error=at_least_zero,
    histogram=tuples_of(st.builds(ErrorBin, up_to=st.none() | positive, elements=whole)),
    deterministic=st.none() | st.booleans(),
)
worst_elements = st.builds(
    WorstElement,
    workload=text,
    inputs=text,
    output=whole,
    index=tuples_of(whole),
    got=st.floats(),
    expected=st.floats(),
    allowed=st.floats(),
)
kernels = st.builds(
    KernelShare,
    module=text,
    origin=st.sampled_from(["authored", "library", "runtime", "interpreter", "kernel", "unknown"]),
    share=st.floats(0, 1),
    samples=whole,
)


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    reason = draw(st.none() | st.sampled_from(Reason))
    stage = MEANINGS[reason].stage if reason else Stage.OK
    measured = stage in (Stage.OK, Stage.UNSTABLE)
    return Evaluation(
        task=draw(text),
        task_hash=draw(text),
        candidate_hash=draw(text),
        backend=draw(text),
        stage=stage,
        reason=reason,
        message=draw(text),
        log=draw(text),
        diagnostics=draw(
            tuples_of(
                st.builds(
                    Diagnostic,
                    line=st.none() | whole,
                    severity=st.sampled_from(["error", "warning", "note"]),
                    message=text,
                )
            )
        ),
        findings=draw(
            tuples_of(st.builds(Finding, reason=st.sampled_from(Reason), line=whole, message=text))
        ),
        worst=draw(st.none() | worst_elements),
        accuracy=draw(accuracies if measured else st.none() | accuracies),
        timing=draw(timings) if measured else None,
        kernels=draw(tuples_of(kernels)),
        notes=draw(tuples_of(text)),
        confinement=draw(st.builds(Confinement, enforced=tuples_of(text), missing=tuples_of(text))),
        environment=Environment(**dict.fromkeys(Environment.model_fields, draw(text))),
        seconds=draw(st.dictionaries(text, at_least_zero, max_size=3)),
        created_at=draw(st.datetimes(timezones=st.just(UTC))),
    )


def comes_back(record: Record) -> None:
    kind = type(record)
    assert kind.model_validate_json(record.model_dump_json()) == record
    # What goes through a socket or to stdout must be JSON as other languages read it, too.
    strict = json.dumps(record.model_dump(mode="json"), allow_nan=False)
    assert kind.model_validate(json.loads(strict)) == record


@given(tasks)
def test_task_comes_back_from_json(task: Task) -> None:
    comes_back(task)
    assert Task.model_validate_json(task.model_dump_json()).content_hash == task.content_hash


@given(candidates)
def test_candidate_comes_back_from_json(candidate: Candidate) -> None:
    comes_back(candidate)


@given(options)
def test_options_come_back_from_json(chosen: Options) -> None:
    comes_back(chosen)


@given(evaluations())
def test_evaluation_comes_back_from_json(evaluation: Evaluation) -> None:
    comes_back(evaluation)


@given(tasks, st.none() | text, st.dictionaries(text, text, max_size=2))
def test_task_hash_ignores_where_files_lie(
    task: Task, path: str | None, starts: dict[str, str]
) -> None:
    moved = task.model_copy(update={"path": path, "starts": starts})
    assert moved.content_hash == task.content_hash


def test_task_hash_is_the_same_in_another_folder(tmp_path: Path) -> None:
    hashes = set()
    for folder in (tmp_path / "here", tmp_path / "there"):
        folder.mkdir()
        (folder / "one_task.py").write_text(TASK_FILE)
        hashes.add(read_task(folder / "one_task.py").content_hash)
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"source": "pass"},
        {"precision": Precision.TF32},
        {"tolerance": Tolerance(rtol=0, atol=0)},
        {"workloads": (Workload(name="default", params={"n": 4}),)},
        {"workloads": (Workload(name="default", weight=2.0),)},
        {"variants": (Variant.LARGE,)},
        {"library_calls": False},
        {"admit": (Admission.NON_FINITE,)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_task_hash_follows_everything_that_decides_a_verdict(change: dict[str, Any]) -> None:
    task = Task(name="t", source="")
    assert task.model_copy(update=change).content_hash != task.content_hash


@given(candidates, text)
def test_candidate_hash_ignores_its_name(candidate: Candidate, name: str) -> None:
    renamed = candidate.model_copy(update={"name": name})
    assert renamed.content_hash == candidate.content_hash


@given(candidates, candidates)
def test_candidate_hash_tells_contents_apart(left: Candidate, right: Candidate) -> None:
    same = (left.backend, left.source) == (right.backend, right.source)
    assert (left.content_hash == right.content_hash) == same


@given(st.lists(text, max_size=4), st.lists(text, max_size=4))
def test_content_hash_tells_lists_of_parts_apart(left: list[str], right: list[str]) -> None:
    assert (content_hash(*left) == content_hash(*right)) == (left == right)


def test_content_hash_is_the_same_on_every_machine() -> None:
    expected = "61ef9c7b99ae5d697cff8d02c60701d0406c0b748424a379b1c50f497771f89f"
    assert content_hash("cpp", "source") == expected


def test_tasks_need_workloads_with_names_of_their_own() -> None:
    with pytest.raises(ValidationError, match="at least one workload"):
        Task(name="t", source="", workloads=())
    with pytest.raises(ValidationError, match="must differ"):
        Task(name="t", source="", workloads=(Workload(name="a"), Workload(name="a")))


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_weights_are_positive_and_finite(weight: float) -> None:
    with pytest.raises(ValidationError, match="weight"):
        Workload(name="a", weight=weight)


def test_candidates_have_a_largest_size() -> None:
    assert Candidate(source="x" * MAX_SOURCE).source
    with pytest.raises(ValidationError, match="at most"):
        Candidate(source="x" * (MAX_SOURCE + 1))


@pytest.mark.parametrize("bad", [{"seeds": 0}, {"baselines": ()}, {"baselines": ("onnx",)}])
def test_options_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Options(**bad)
