"""Runs a tool together with the program that it watches, and ends both if they take too long."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernel_smith.errors import MissingPrerequisite

_SECONDS = 300.0


def run_tool(
    command: Sequence[str], *, name: str, option: str, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """In this folder (default: the current one). Who leaves out the option needs no such tool."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            out, err = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise MissingPrerequisite(
                f"{name} was not done after {_SECONDS:g} s", hint=f"leave out {option}"
            ) from None
        finally:
            if process.returncode is None:  # the watched program would go on without the tool
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
