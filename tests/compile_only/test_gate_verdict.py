"""Endings and answers of an untrusted process, without the process."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.compile_only import answer as answers
from kernel_smith.evaluation.compile_only import find_target
from kernel_smith.evaluation.compile_only.answer import Answer, read_answer
from kernel_smith.evaluation.compile_only.verdict import Ending, decide, readable_log
from kernel_smith.records import Reason

SM_90 = find_target("sm_90")
KERNEL = {
    "name": "k",
    "line": 3,
    "constants": {"B": 64, "F": 0.5, "E": True, "N": None, "T": "ieee"},
    "warps": 4,
    "stages": 3,
    "registers": 32,
    "spill_bytes": 0,
    "shared_bytes": 0,
    "compile_seconds": 0.5,
    "launches": 1,
    "workloads": ["small"],
}
FAILURE = {"name": "k", "line": None, "constants": {}, "message": "PassManager::run failed"}


def outcome(kind: str) -> dict[str, str]:
    return {"kind": kind, "message": "Oops: no", "traceback": ""}


def make(phase: str = "forward", kind: str | None = "done", **changes: Any) -> Answer:
    data = {"phase": phase, "kernels": [KERNEL], "failures": [], **changes}
    return Answer.model_validate(data | {"outcome": kind and outcome(kind)})


def reason(answer: Answer | None, status: int | None = 0, log: str = "") -> Reason | None:
    return decide(answer, Ending(status, log), SM_90, "mine.py").reason


@pytest.mark.parametrize(
    ("phase", "status", "expected"),
    [
        ("forward", None, Reason.CALL_TIMEOUT),
        ("compiling k", None, Reason.COMPILER_TIMEOUT),
        ("load", None, Reason.LOAD_TIMEOUT),
        ("forward", -signal.SIGSEGV, Reason.CRASHED),
        ("compiling k", -signal.SIGABRT, Reason.COMPILER_REJECTED),
        ("load", 3, Reason.LOAD_CRASHED),
        ("forward", -signal.SIGKILL, Reason.MEMORY_LIMIT),
        ("forward", 0, Reason.PROTOCOL_VIOLATION),
    ],
)
def test_the_phase_tells_what_was_interrupted(
    phase: str, status: int | None, expected: Reason
) -> None:
    assert reason(make(phase, None), status) is expected


def test_no_answer_at_all_is_a_failure_too() -> None:
    assert reason(None, 0) is Reason.PROTOCOL_VIOLATION
    assert reason(None, None) is Reason.LOAD_TIMEOUT
    assert reason(None, 1) is Reason.LOAD_CRASHED


@pytest.mark.parametrize("status", [None, 1, -signal.SIGSEGV])
def test_success_is_not_believed_of_a_process_that_ended_badly(status: int | None) -> None:
    assert reason(make(), 0) is None
    assert reason(make(), status) is not None


@pytest.mark.parametrize(
    ("phase", "kind", "expected"),
    [
        ("forward", "exception", Reason.EXCEPTION),
        ("load", "exception", Reason.LOAD_EXCEPTION),
        ("task", "exception", Reason.LOAD_EXCEPTION),
        ("forward", "signature", Reason.WRONG_SIGNATURE),
        ("forward", "memory", Reason.MEMORY_LIMIT),
        ("forward", "resources", Reason.OUT_OF_RESOURCES),
        ("forward", "compiler", Reason.COMPILER_REJECTED),
    ],
)
def test_reported_failures_have_their_reasons(phase: str, kind: str, expected: Reason) -> None:
    assert reason(make(phase, kind)) is expected


@pytest.mark.parametrize("change", [{"launches": 0}, {"line": None}], ids=str)
def test_kernels_that_are_foreign_or_never_launched_do_not_count(change: dict[str, Any]) -> None:
    assert reason(make(kernels=[KERNEL | change])) is Reason.NO_AUTHORED_KERNEL


@pytest.mark.parametrize("change", [{"shared_bytes": 228 << 10}, {"warps": 64}], ids=str)
def test_a_launch_that_cannot_fit_is_not_believed(change: dict[str, Any]) -> None:
    assert reason(make(kernels=[KERNEL | change])) is Reason.OUT_OF_RESOURCES


def test_errors_that_compiler_passes_print_are_found_in_the_log() -> None:
    log = "noise\n/tmp/x/candidate.py:12:4: error: operand does not dominate\nmore"
    verdict = decide(make(kind="compiler", failures=[FAILURE]), Ending(0, log), SM_90, "mine.py")
    assert verdict.message == "mine.py:12: operand does not dominate"


def test_the_log_calls_the_candidate_by_its_name() -> None:
    shown = readable_log(None, '  File "/tmp/a-b/scratch-1/candidate.py", line 3', r"my\1.py")
    assert shown == r'File "my\1.py", line 3'


def test_an_answer_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(make().model_dump_json())
    read = read_answer(path)
    assert read == make()
    assert read is not None and read.kernels[0].constants["E"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"name": "x" * 1000},
        {"warps": 0},
        {"launches": -1},
        {"registers": 10**400},
        {"compile_seconds": float("inf")},
        {"constants": {"B": float("nan")}},
        {"constants": {"B": [1]}},
        {"verdict": "ok"},
        {"line": "7a"},
    ],
    ids=lambda change: str(change)[:30],
)
def test_values_out_of_bounds_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "report.json"
    data = {"phase": "forward", "failures": [], "outcome": outcome("done")}
    path.write_text(json.dumps(data | {"kernels": [KERNEL | change]}))
    assert read_answer(path) is None


def test_a_report_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_text(make().model_dump_json())
    monkeypatch.setattr(answers, "MAX_BYTES", path.stat().st_size)
    assert read_answer(path) is not None
    monkeypatch.setattr(answers, "MAX_BYTES", path.stat().st_size - 1)
    assert read_answer(path) is None


@given(data=st.binary(max_size=60) | st.text(max_size=60).map(lambda t: json.dumps(t).encode()))
def test_nonsense_is_no_answer(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "nonsense.json"
    path.write_bytes(data)
    assert read_answer(path) is None
