"""What a Python process with PyTorch must be able to read, and nothing of the evaluator's own.

Whole folders are listed where that is safe. Where one of them holds our own package, however it was
installed, its other entries are listed one by one. Source trees that path files (`*.pth`) point to
are left out, unless they hold a package that every candidate needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_OWN_PACKAGE = "kernel_smith"
_NEEDED_PACKAGES = ("torch", "numpy")

_SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload"),
    *("/etc/alternatives", "/etc/group", "/etc/locale.alias", "/etc/localtime"),
    *("/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/timezone"),
    *("/proc", "/sys/devices/system"),
    # Not /dev/zero: mapped, it is shared memory that no limit counts.
    *("/dev/null", "/dev/random", "/dev/urandom"),
)
# An environment's prefix may be any folder, a project's root for one: only what belongs to it.
_OF_A_PREFIX = ("bin", "include", "lib", "lib64", "libexec", "share", "pyvenv.cfg", "*-linux-gnu*")
_VENDORS = {"MACA_PATH": "/opt/maca", "ROCM_PATH": "/opt/rocm"}
_GRANTED_ANYWAY = (Path("/"), Path("/usr"))
_PACKAGE_FOLDERS = ("lib*/python*/site-packages", "lib*/python*/dist-packages")


def default_readable() -> tuple[Path, ...]:
    """Files and folders for `Policy.readable`; none holds any of the evaluator's source."""
    prefixes = (part for prefix in _prefixes() for part in _parts(prefix))
    wanted = [*prefixes, *_package_folders(), *_needed_packages(), *_software_of_vendors()]
    return _granted([*map(Path, _SYSTEM), *wanted])


def installation_of(program: Path) -> tuple[Path, ...]:
    """What a program needs that was installed in a folder of its own, such as /opt/gcc."""
    prefix = Path(os.path.realpath(program)).parent.parent
    return () if prefix in _GRANTED_ANYWAY else _granted(_parts(prefix))


def _software_of_vendors() -> Iterator[Path]:
    """What the PyTorch of MetaX or AMD is linked with; NVIDIA's comes in packages."""
    for variable, usual in _VENDORS.items():
        yield from _parts(Path(os.environ.get(variable) or usual))


def _granted(wanted: Iterable[Path]) -> tuple[Path, ...]:
    hidden = frozenset(_hidden())
    granted: set[Path] = set()
    for path in wanted:
        if path.exists():
            granted.update(_without(path.resolve(), hidden))
    return tuple(sorted(path for path in granted if granted.isdisjoint(path.parents)))


def listable(readable: Iterable[Path]) -> tuple[Path, ...]:
    """Import folders whose entries are granted singly: Python finds modules by listing them."""
    parents = {os.path.dirname(path) for path in readable}
    return tuple(folder for folder in _import_folders() if str(folder) in parents)


def _without(path: Path, hidden: frozenset[Path]) -> Iterator[Path]:
    """`path`, or if something hidden lies in it, its entries that are free of it."""
    if not hidden.isdisjoint((path, *path.parents)):
        return
    if not any(path in secret.parents for secret in hidden):
        yield path
        return
    for entry in path.iterdir():
        # A link may lead anywhere; what it leads to is granted in its own place, or not at all.
        if not entry.is_symlink():
            yield from _without(entry, hidden)


def _hidden() -> Iterator[Path]:
    own = find_spec(_OWN_PACKAGE)
    for location in (own and own.submodule_search_locations) or ():
        yield Path(location).resolve()
    for folder in _package_folders():
        for entry in folder.glob(f"*{_OWN_PACKAGE}*"):
            yield entry.resolve()


def _prefixes() -> set[Path]:
    return {Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix)}


def _parts(prefix: Path) -> Iterator[Path]:
    for pattern in _OF_A_PREFIX:
        yield from prefix.glob(pattern)


def _import_folders() -> tuple[Path, ...]:
    return _resolved(tuple(entry for entry in sys.path if entry))


@cache  # a process that is about to be confined has this from the one that forked it
def _resolved(folders: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(Path(os.path.realpath(folder)) for folder in folders)


def _package_folders() -> set[Path]:
    """Where packages are installed, also for interpreters of which ours is an environment."""
    folders = {folder for folder in _import_folders() if folder.name.endswith("-packages")}
    for prefix in (*_prefixes(), Path("/usr"), Path("/usr/local")):
        for pattern in _PACKAGE_FOLDERS:
            folders.update(folder.resolve() for folder in prefix.glob(pattern))
    return folders


def _needed_packages() -> Iterator[Path]:
    """Packages that an editable installation keeps elsewhere."""
    for name in _NEEDED_PACKAGES:
        specification = find_spec(name)
        for location in (specification and specification.submodule_search_locations) or ():
            yield Path(location)
