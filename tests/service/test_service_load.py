"""Clients, bad programs and sudden deaths, in the short form of `benchmarks/service_load.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "service_load.py"
PROGRAMS = (
    "honest",
    "wrong",
    "does not compile",
    "raises",
    "crashes",
    "hangs",
    "07_forged_verdict",
)
JOBS, CLIENTS = 10, 5


@pytest.mark.slow
def test_nothing_is_lost_or_mixed_up_when_a_judge_and_the_service_are_killed(
    tmp_path: Path,
) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, str(SCRIPT), "--jobs", str(JOBS), "--clients", str(CLIENTS)]
    # One lane: starting judges takes longer than all evaluations together.
    command += [
        "--lanes",
        "1",
        "--kills",
        "2",
        "--victims",
        "judge,server",
        "--only",
        ",".join(PROGRAMS),
        "--output",
        str(report),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(report.read_text())
    assert told["amiss"] == []
    assert (told["answers"], told["listed_jobs"]) == (JOBS, JOBS)
    assert told["kills"] == {"judge": 1, "server": 1}
    assert len(told["ends"]) > 5
