"""Which GPU this machine has, asked without importing torch and without touching the GPU.

A process that has initialised CUDA cannot fork usable children, so the driver's own tool is asked.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys


def visible_architecture() -> str | None:
    """Return the architecture of the NVIDIA GPU that CUDA would use, such as `sm_90`; None
    without one."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    first = "0" if visible is None else visible.split(",")[0].strip()
    # An empty list hides every GPU, and so does a number below zero.
    return _architecture_of(first) if re.fullmatch(r"\d+|GPU-[\w-]+", first) else None


@functools.cache
def _architecture_of(device: str) -> str | None:
    question = ["nvidia-smi", "-i", device, "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            question, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.fullmatch(r"(\d+)\.(\d+)\s*", answer.stdout)
    return f"sm_{match[1]}{match[2]}" if match and answer.returncode == 0 else None


def vendor_of_torch() -> str:
    """Return the dialect of the GPUs that the torch of this process is built for: all of them
    are `cuda` to torch itself."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "cuda"
    if getattr(torch.version, "maca", None) or "metax" in torch.__version__:
        return "maca"
    return "hip" if torch.version.hip else "cuda"
