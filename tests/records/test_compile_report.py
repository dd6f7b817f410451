"""Compile reports: consistent, and readable as sentences."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from kernel_smith.records import MEANINGS, CompileReport, KernelFailure, KernelResources, Reason
from kernel_smith.records.compile_prose import render_compiled
from kernel_smith.records.verdict import Stage

KERNEL = KernelResources(
    name="softmax_kernel",
    line=7,
    constants={"B": 1024, "PRECISION": "ieee", "EVEN": True},
    warps=4,
    stages=3,
    registers=40,
    spill_bytes=0,
    shared_bytes=36864,
    occupancy=0.375,
    fits=True,
    compile_seconds=0.4,
    launches=2,
    workloads=("wide", "tall"),
)


def make(reason: Reason | None = None, **changes: Any) -> CompileReport:
    fields: dict[str, Any] = {
        "task": "t",
        "task_hash": "a",
        "candidate_hash": "b",
        "backend": "triton",
        "target": "sm_90",
        "shared_limit": 227 << 10,
        "stage": MEANINGS[reason].stage if reason else Stage.OK,
        "reason": reason,
        "kernels": (KERNEL,),
        "compiler": "3.7.1",
        "seconds": 3.5,
        "created_at": datetime(2026, 1, 2, tzinfo=UTC),
    }
    return CompileReport(**fields | changes)


def test_it_comes_back_from_json_with_the_types_of_its_constants() -> None:
    report = make()
    again = CompileReport.model_validate_json(report.model_dump_json())
    assert again == report
    constants = again.kernels[0].constants
    assert [type(value) for value in constants.values()] == [int, str, bool]


@pytest.mark.parametrize(
    ("reason", "stage"),
    [(None, Stage.TIMEOUT), (Reason.EXCEPTION, Stage.OK), (Reason.EXCEPTION, Stage.TIMEOUT)],
)
def test_stage_and_reason_belong_together(reason: Reason | None, stage: Stage) -> None:
    with pytest.raises(ValidationError, match="does not belong"):
        make(reason, stage=stage)


def test_a_report_tells_what_each_kernel_uses() -> None:
    assert render_compiled(make(log="printed by the candidate")).splitlines() == [
        "ok: compiles for sm_90: softmax_kernel. Nothing was run.",
        "Kernels on sm_90 (registers and spills per thread):",
        "  softmax_kernel (line 7) B=1024 PRECISION=ieee EVEN=True",
        "    40 registers, 0 bytes spilled, shared memory 36 of 227 KiB, 4 warps, 3 stages; "
        "occupancy 38%, 2 launches (wide, tall)",
    ]


def test_kernels_that_were_not_launched_say_why() -> None:
    tried = KERNEL.model_copy(update={"launches": 0, "workloads": (), "registers": None})
    large = KERNEL.model_copy(update={"fits": False, "occupancy": None, "line": None})
    text = render_compiled(make(kernels=(tried, large)))
    assert "unknown registers" in text
    assert "occupancy 38%, tried, not launched" in text
    assert "softmax_kernel (not in the candidate's file)" in text
    assert "3 stages; does not fit" in text


def test_a_long_list_of_configurations_is_cut() -> None:
    text = render_compiled(make(kernels=(KERNEL,) * 100))
    assert text.count("softmax_kernel (line 7)") == 30
    assert text.endswith("and 70 more")


def test_a_failure_comes_with_line_advice_and_log() -> None:
    failure = KernelFailure(name="k", line=9, constants={"B": 3}, message="not a power of 2")
    report = make(
        Reason.COMPILER_REJECTED,
        message="mine.py:9: not a power of 2",
        failures=(failure,),
        log="the end",
    )
    text = render_compiled(report)
    meaning = MEANINGS[Reason.COMPILER_REJECTED]
    assert text.startswith(f"compile-error: compiler-rejected: {meaning.sentence}.\n  mine.py:9: ")
    assert f"Advice: {meaning.advice}" in text
    assert "Rejected by the compiler:\n  line 9: k B=3: not a power of 2" in text
    assert text.endswith("Log:\n  the end")
