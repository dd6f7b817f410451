"""Compiled libraries, kept by the content that they were compiled from.

An entry is a folder with the library and the digest of its bytes. It appears whole or not at all,
and an entry whose bytes no longer match its digest is dropped, never used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernel_smith.errors import MissingPrerequisite, reason_of
from kernel_smith.inline.dialects import recipe
from kernel_smith.inline.processor import processor
from kernel_smith.inline.toolchain import Toolchain

_LIBRARY = "kernel.so"
_DIGEST = "kernel.so.sha256"
_NOTES = "compiler.log"


def cache_root() -> Path:
    """Tell where this user's caches lie: `$KERNEL_SMITH_CACHE`, or the usual place for caches."""
    if chosen := os.environ.get("KERNEL_SMITH_CACHE"):
        return Path(os.path.expanduser(chosen)).absolute()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(os.path.expanduser(shared)).absolute() / "kernel-smith"
    return _home() / ".cache" / "kernel-smith"


def _home() -> Path:
    """Return this user's home; the root, as containers have it, for one who has none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def keep_text(path: Path, text: str) -> None:
    """Write a file of a cache, whole or not at all. A full or read-only disk costs the cache, never
    the answer."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise


def object_key(toolchain: Toolchain, source: str, flags: Sequence[str]) -> str:
    """Identify a library by all that decides its bytes, the processor and our headers included."""
    digest = hashlib.sha256()
    parts = [
        toolchain.dialect,
        toolchain.version,
        *toolchain.command_prefix,
        *recipe(toolchain.dialect, toolchain.route).link_arguments,
        toolchain.route,
        toolchain.arch,
        toolchain.headers,
        processor(),
        *flags,
        source,
    ]
    for part in parts:
        data = part.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class ObjectCache:
    """The libraries under `root`/objects; `root` is the user's cache unless given."""

    def __init__(self, root: Path | None = None) -> None:
        self.folder = (cache_root() if root is None else Path(root).absolute()) / "objects"

    def get(self, key: str) -> Path | None:
        """Return the library of that key, if it is here and unharmed."""
        entry = self._entry(key)
        # Asked first: one that comes only now is whole, and must not be taken for a harmed one.
        if not entry.exists():
            return None
        try:
            intact = _digest(entry / _LIBRARY) == (entry / _DIGEST).read_text()
        except OSError:
            intact = False
        if intact:
            return entry / _LIBRARY
        self._drop(entry)
        return None

    def notes(self, key: str) -> str:
        """Return what was kept beside the library of that key."""
        try:
            return (self._entry(key) / _NOTES).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def put(self, key: str, built: Path, notes: str = "") -> Path:
        """Keep a copy of a built library. Of several that arrive at once, the first stays."""
        entry = self._entry(key)
        if kept := self.get(key):  # and if one is there but harmed, this makes room
            return kept
        try:
            with self._staging() as staging:
                shutil.copyfile(built, staging / _LIBRARY)
                (staging / _LIBRARY).chmod(0o444)
                (staging / _DIGEST).write_text(_digest(staging / _LIBRARY))
                if notes:
                    (staging / _NOTES).write_text(notes, encoding="utf-8")
                staging.chmod(0o755)
                entry.parent.mkdir(exist_ok=True)
                with contextlib.suppress(OSError):  # another process was first
                    staging.rename(entry)
            kept = self.get(key)
        except OSError as problem:
            raise _unusable(self.folder, reason_of(problem)) from problem
        if kept is None:
            raise _unusable(self.folder, "what was written there cannot be read back")
        return kept

    def _entry(self, key: str) -> Path:
        return self.folder / key[:2] / key

    @contextlib.contextmanager
    def _staging(self) -> Iterator[Path]:
        """A folder beside the entries, from which and into which they can be renamed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix="new-", dir=self.folder))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _drop(self, entry: Path) -> None:
        """Take an entry away at once, so that nobody sees half of it, and then delete it."""
        with contextlib.suppress(OSError), self._staging() as staging:
            entry.rename(staging / "dropped")


def _unusable(folder: Path, problem: str) -> MissingPrerequisite:
    return MissingPrerequisite(
        f"cannot keep compiled kernels in {folder}: {problem}",
        hint="set KERNEL_SMITH_CACHE to a folder with free space that you can write to",
    )


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
