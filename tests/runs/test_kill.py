"""A run that is killed again and again, in the short form of `benchmarks/kill_and_resume.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_and_resume.py"


@pytest.mark.slow
def test_nothing_is_lost_or_done_twice_when_a_run_is_killed() -> None:
    command = [sys.executable, str(SCRIPT), "--kills", "4", "--evaluations", "300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"in_flight": 0' in done.stdout
