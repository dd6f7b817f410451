"""Runs scripts whose Triton kernels are interpreted, as they are in a candidate's process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

INTERPRETING = """
from kernel_smith.evaluation.sandbox.interpreter import interpret_kernels

interpret_kernels(disarmed=False)
"""


def run_interpreted(script: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERPRETING + script]
    return subprocess.run(command, capture_output=True, text=True, **options)
