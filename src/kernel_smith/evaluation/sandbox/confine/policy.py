"""What a confined process may use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The bounds of one confined process and of everything it starts."""

    scratch: Path
    """The only folder that may be written. It must exist; what it holds is hidden by a new,
    empty file system, which the monitor sees too and nobody else does."""
    readable: tuple[Path, ...]
    """Files and folders that may be read, mapped and (with `allow_exec`) executed."""
    memory_bytes: int
    """Beyond what the process holds when it is confined."""
    processes: int
    """Threads count too."""
    cpu_seconds: int
    file_bytes: int
    """The largest size of one file."""
    scratch_bytes: int
    """All files in `scratch` together."""
    cores: frozenset[int]
    open_files: int = 256
    allow_exec: bool = False
    """May it fork and execute programs? A compiler must; a candidate must not."""
    gpu: bool = False
    """May it use the GPUs of this machine?"""
