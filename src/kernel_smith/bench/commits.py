"""The commits that a benchmark was made at: of this program, and of its suites."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SECONDS = 10.0


def own_commit() -> tuple[str | None, bool]:
    """Return the commit of this program where it is a checkout, and whether it was changed
    since."""
    folder = Path(__file__).parent
    return commit_of(folder), bool(_git(folder, "status", "--porcelain", "--", "."))


def commit_of(path: Path) -> str | None:
    """Return the commit that a folder, or a file's folder, is at; None where it is no checkout,
    or one that has nothing to do with it: a copy may lie where another project ignores it."""
    if not path.exists():
        return None
    folder = path if path.is_dir() else path.parent
    return (_git(folder, "ls-files", "--", ".") and _git(folder, "rev-parse", "HEAD")) or None


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
