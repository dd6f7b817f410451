"""The probe says what this machine can enforce and leaves no trace."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine import Report, namespaces, probe, seccomp


def traces():
    mounts = Path("/proc/self/mounts").read_text()
    return mounts, os.getcwd(), dict(os.environ), os.sched_getaffinity(0), os.getresuid()


def test_the_probe_reports_and_leaves_no_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = traces(), len(os.listdir("/proc/self/fd"))
    report = probe()
    assert (traces(), len(os.listdir("/proc/self/fd"))) == before
    assert list(tmp_path.iterdir()) == []
    assert report.enforced


def test_the_probe_names_what_is_missing(refuse):
    refuse("seccomp", "unshare")
    missing = {line.split(":")[0] for line in probe().missing}
    assert {seccomp.FEATURE, namespaces.NETWORK, namespaces.PID} <= missing


def test_reports_add_up():
    total = Report(("a",), ("b: c (d)",)) + Report(("e",))
    assert total == Report(("a", "e"), ("b: c (d)",))


def test_the_package_is_imported_without_torch():
    code = "import sys, kernel_smith.evaluation.sandbox.confine; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
