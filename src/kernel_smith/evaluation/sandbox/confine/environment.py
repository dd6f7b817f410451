"""The environment: what computing needs, and no secret of whoever started the evaluator."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine import devices
from kernel_smith.evaluation.sandbox.confine.report import Ledger, Unavailable

FEATURE = "scrubbed environment"

_KEPT = frozenset({"PATH", "LANG", "TZ", "MACA_PATH", "ROCM_PATH", *devices.CHOICES})
_KEPT_PREFIXES = ("LC_", "OMP_", "GOMP_", "MKL_", "KMP_")
_FOLDERS = (
    *("HOME", "TMPDIR", "XDG_CACHE_HOME"),
    *("TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR"),
)
# Fields of /proc/self/stat, counted from the one after the process's name
_ENV_START, _ENV_END = 47, 48


def scrubbed_environment(base: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Path, language, time zone and threads of `base`; every folder is `scratch`."""
    kept = {
        name: value
        for name, value in base.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    return kept | dict.fromkeys(_FOLDERS, str(scratch))


def scrub(ledger: Ledger, scratch: Path) -> None:
    """Replace this process's environment, and erase the one it was started with."""
    kept = scrubbed_environment(os.environ, scratch)
    os.environ.clear()
    os.environ.update(kept)
    tempfile.tempdir = str(scratch)
    ledger.attempt(
        FEATURE,
        _erase_initial_block,
        otherwise="the environment that the evaluator was started with can be read in memory",
    )


def _erase_initial_block() -> None:
    """The kernel's copy, which /proc/self/environ shows, is not touched by `os.environ`."""
    text = Path("/proc/self/stat").read_text()
    fields = text[text.rindex(")") + 2 :].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    if not 0 < start < end:
        raise Unavailable("the kernel does not say where it is")
    ctypes.memset(start, 0, end - start)
