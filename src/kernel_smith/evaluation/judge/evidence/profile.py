"""Whose code a process executed: samples attributed to the file that the code was loaded from.

`attribute` takes the instruction pointers of `perf_events.Sampler` and the address map of
`read_maps`, both obtained by the judge. Names prove nothing, since a candidate may call its own
file `libm.so`. So a file counts as part of the library, the runtime or the interpreter only where
it lies in a folder that was there before the candidate and that the candidate cannot write to.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from kernel_smith.evaluation.judge.evidence.perf_events import FIRST_KERNEL_ADDRESS, OTHER_PROCESS
from kernel_smith.records import KernelShare

Origin = Literal["authored", "library", "runtime", "interpreter", "kernel", "unknown"]

_SYSTEM_FOLDERS = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_DELETED = " (deleted)"  # how the kernel marks files without a name, memfd's among them

_MAPS_LINE = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) \S+ \S+ \S+ \S+ *(.*)")

# What every compiled program needs to run: loader, C and C++ runtimes, threading, foreign calls.
# Wheels add a hash to the names of the copies that they bring along: libgomp-d22c30c5.so.1.
_RUNTIME_NAME = re.compile(
    r"(ld-linux[\w-]*|ld-musl-\w+|libc|libm|libmvec|libpthread|libdl|librt|libgcc_s|libstdc\+\+"
    r"|libatomic|libquadmath|libgfortran|libgomp|libomp|libiomp5|libffi)"
    r"(-[0-9a-f.-]+)?\.so(\.[0-9.]+)?"
)
_INTERPRETER_NAME = re.compile(r"libpython\d.*\.so.*")


class _Source(NamedTuple):
    module: str
    origin: Origin


_KERNEL = _Source("[kernel]", "kernel")
_ANONYMOUS = _Source("[anonymous code]", "unknown")
_OTHER_PROCESS = _Source("[other process]", "unknown")
_VDSO = _Source("[vdso]", "runtime")


class _Mapping(NamedTuple):
    begin: int
    end: int
    path: str


_NOWHERE = _Mapping(0, 0, "")


def read_maps(pid: int) -> str:
    """The address map of a process: the text of its `/proc/PID/maps`."""
    # The kernel escapes line feeds in file names but not carriage returns: were those taken for
    # line ends, a candidate could forge lines by the name of a file.
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read()


def attribute(
    ips: Iterable[int],
    maps: str,
    authored: Callable[[str], bool],
    is_modified: Callable[[int, int], bool] = lambda begin, end: False,
) -> tuple[KernelShare, ...]:
    """The share of the samples that each module has, largest first; empty without samples.

    `authored` is asked first, with each sampled file's path exactly as `maps` gives it: a file that
    has been removed since ends in ` (deleted)`. Authored code that `is_modified`, by where it
    begins and ends in memory, may be anybody's.
    """
    mappings = _parse_maps(maps)
    begins = [mapping.begin for mapping in mappings]
    by_mapping: Counter[_Mapping] = Counter()
    by_source: Counter[_Source] = Counter()
    for ip in ips:
        if ip == OTHER_PROCESS:
            by_source[_OTHER_PROCESS] += 1
        elif ip >= FIRST_KERNEL_ADDRESS:
            by_source[_KERNEL] += 1
        else:
            index = bisect_right(begins, ip) - 1
            known = index >= 0 and ip < mappings[index].end
            by_mapping[mappings[index] if known else _NOWHERE] += 1
    for mapping, samples in by_mapping.items():
        source = _source(mapping.path, authored)
        if source.origin == "authored" and is_modified(mapping.begin, mapping.end):
            source = _ANONYMOUS
        by_source[source] += samples
    total = by_source.total()
    return tuple(
        KernelShare(module=module, origin=origin, share=samples / total, samples=samples)
        for (module, origin), samples in by_source.most_common()
    )


def _parse_maps(maps: str) -> list[_Mapping]:
    """The mappings by address. Lines that do not look like one are passed over."""
    found = (_MAPS_LINE.fullmatch(line) for line in maps.split("\n"))
    return sorted(
        _Mapping(int(match[1], 16), int(match[2], 16), match[3]) for match in found if match
    )


def _source(path: str, authored: Callable[[str], bool]) -> _Source:
    if path == "[vdso]":
        return _VDSO
    if not path.startswith("/"):
        return _ANONYMOUS
    if authored(path):
        return _Source(PurePosixPath(path).name, "authored")
    if path == _interpreter_path():
        return _Source(PurePosixPath(path).name, "interpreter")
    if not path.startswith(_trusted_prefixes()):
        # Removed files hide what they were, and control characters would reach a terminal.
        shown = path.isprintable() and not path.endswith(_DELETED)
        return _Source(PurePosixPath(path).name, "unknown") if shown else _ANONYMOUS
    return _trusted_source(PurePosixPath(path.removesuffix(_DELETED)))


def _trusted_source(path: PurePosixPath) -> _Source:
    """Tell apart, by name, files that lie where a candidate cannot have put them."""
    if path.parent.name == "lib-dynload" or _INTERPRETER_NAME.fullmatch(path.name):
        return _Source(path.name, "interpreter")
    if _RUNTIME_NAME.fullmatch(path.name):
        return _Source(path.name, "runtime")
    return _Source(path.name, "library")


@cache
def _interpreter_path() -> str:
    return os.path.realpath(sys.executable)


@cache
def _trusted_prefixes() -> tuple[str, ...]:
    """Folders of the system, of this Python, of its packages, and of torch if built in place."""
    folders = [*_SYSTEM_FOLDERS, f"{sys.prefix}/lib", f"{sys.base_prefix}/lib"]
    folders += [entry for entry in sys.path if PurePosixPath(entry).name in _PACKAGE_FOLDERS]
    torch = find_spec("torch")
    if torch and torch.submodule_search_locations:
        folders += torch.submodule_search_locations
    # The kernel reports paths with symbolic links resolved.
    return tuple(sorted({os.path.realpath(folder) + "/" for folder in folders}))
