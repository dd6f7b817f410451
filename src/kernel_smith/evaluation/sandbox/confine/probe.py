"""What this machine can enforce, found out by trying."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine.policy import Policy
from kernel_smith.evaluation.sandbox.confine.report import Report
from kernel_smith.evaluation.sandbox.confine.trial import run_confined


def probe() -> Report:
    """Confine a child that does nothing, report, and leave no trace."""
    with tempfile.TemporaryDirectory(prefix="kernel-smith-probe-") as scratch:
        return run_confined(lambda: None, modest_policy(Path(scratch))).report


def modest_policy(scratch: Path) -> Policy:
    """Enough for a small program, on the cores that this process has."""
    return Policy(
        scratch=scratch,
        readable=(),
        memory_bytes=256 << 20,
        processes=16,
        cpu_seconds=60,
        file_bytes=16 << 20,
        scratch_bytes=16 << 20,
        cores=frozenset(os.sched_getaffinity(0)),
    )
