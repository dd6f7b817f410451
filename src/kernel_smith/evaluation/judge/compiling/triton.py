"""Runs the programs that Triton needs, for processes that may start none.

A candidate's process sends PTX, or the C source of a launcher. Both are compiled in a sandbox, with
a command line of ours, and kept by content in a cache that only the judge writes. The process gets
copies of what it asked for, in a folder that it can read.
"""

from __future__ import annotations

import functools
import re
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.judge.compiling.source import Folders
from kernel_smith.evaluation.judge.platform.device_lock import DeviceLock
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.sandbox.triton_tools import COMPILED, COMPILING, LAUNCHER, MACHINE_CODE
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.resources import KernelResources, parse_resources
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.records import Limits, Reason, content_hash

_PRODUCT = "product"
_DIALECT, _ROUTE = "cuda", "native"  # whose compiler speaks as ptxas does
_FLAG = re.compile(
    r"-lineinfo|-suppress-debug-info|-g|-v|--fmad=(true|false)|--opt-level|[0-3]"
    r"|--gpu-name=sm_\w+|--regAllocOptLevel=\d|-O[0-3]|--maxrregcount=\d+"
)
_DEVICE = re.compile(r"--gpu-name=sm_(\d+)\w*")


class TritonCompiler:
    def __init__(
        self,
        processes: ProcessPool,
        place: CoreSet,
        limits: Limits,
        turns: DeviceLock,
        folders: Folders | None = None,
    ) -> None:
        self._turns = turns
        self._processes = processes
        self._place = place
        self._limits = limits
        self._cache = ObjectCache()
        self._served: dict[str, str] = {}
        self._owns_folders = folders is None
        self.armed, self.disarmed = folders or Folders.new(processes)
        self.can_disarm = True  # in the process: launches do nothing there
        self.has_kernels = False
        self.compiling_seconds = 0.0
        self.resources: list[KernelResources] = []
        self.rejection: Rejected | None = None

    @property
    def kernel_texts(self) -> list[str]:
        """None: Triton's kernels are functions of the candidate."""
        return []

    def products(self) -> list[Path]:
        made = [self.armed / name for name in self._served.values()]
        return [path for path in made if path.exists()]

    def build_ahead(self) -> None:
        """Nothing: kernels are Python functions, which Triton compiles when they are launched."""

    def build_variants(self, sources: Sequence[str], place: CoreSet, deadline: float) -> list[bool]:
        """Nothing, for the same reason."""
        return [True for _ in sources]

    def provide(self, need: Any, *, disarmed: bool = False) -> dict[str, Any]:
        """Answer a process that asks for something compiled, or says that it compiles by itself."""
        if need == COMPILING:
            self._turns.step_out()
            return {}
        if need == COMPILED:
            self._turns.come_back()
            return {}
        try:
            dialect, source = str(need["dialect"]), str(need["source"])
            flags = tuple(str(flag) for flag in need["flags"])
            source.encode()  # JSON can carry halves of characters, which no file can hold
            command, name = _command(dialect, flags)
        except (KeyError, TypeError, UnicodeError, BadInput) as error:
            return {"log": f"malformed request: {error}"}
        folder = self.disarmed if disarmed else self.armed
        try:
            with self._turns.stepping_out():
                path = self._make(command, name, source, folder)
        except Rejected as rejected:
            self.rejection = rejected
            return {"log": str(rejected.evidence.get("log") or rejected.message)}
        self.rejection = None  # whatever failed before, the candidate got over it
        self.has_kernels |= dialect == MACHINE_CODE
        return {"path": str(path)}

    def provide_disarmed(self, need: Any) -> dict[str, Any]:
        """The same, for a process that launches nothing."""
        return self.provide(need, disarmed=True)

    def _make(self, command: tuple[str, ...], name: str, source: str, folder: Path) -> Path:
        key = content_hash(_versions(), *command, source)
        served = self._served.get(key, f"object-{len(self._served)}{_suffix(name)}")
        if not (folder / served).exists():
            path = self._cache.get(key) or self._compile(key, command, name, source)
            shutil.copyfile(path, folder / served)
            (folder / served).chmod(0o555)
            if key not in self._served:
                said = self._cache.notes(key)
                self.resources += parse_resources(_DIALECT, _ROUTE, said)
            self._served[key] = served
        return folder / served

    def _compile(self, key: str, command: tuple[str, ...], name: str, source: str) -> Path:
        started = time.monotonic()
        with tempfile.NamedTemporaryFile(dir=self._processes.folder) as product:
            target = Path(product.name)
            code, log = self._processes.run_program(
                self._place,
                self._limits,
                list(command),
                files={name: source},
                product=_PRODUCT,
                target=target,
                timeout=self._limits.compile_seconds,
            )
            self.compiling_seconds += time.monotonic() - started
            if code is None:
                seconds = self._limits.compile_seconds
                message = f"stopped after {seconds:g} s or out of memory"
                raise Rejected(Reason.COMPILER_TIMEOUT, message, log=log)
            if code != 0 or not target.stat().st_size:
                raise Rejected(Reason.COMPILER_REJECTED, _first_error(log), log=log)
            return self._cache.put(key, target, notes=log)

    def close(self) -> None:
        if self._owns_folders:
            for folder in (self.armed, self.disarmed):
                shutil.rmtree(folder, ignore_errors=True)


def _command(dialect: str, flags: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The command line, and the name of its source."""
    if dialect == MACHINE_CODE:
        refused = [flag for flag in flags if not _FLAG.fullmatch(flag)]
        if refused:
            raise BadInput(f"ptxas is not given {', '.join(refused)}", hint="leave it out")
        return (_ptxas(flags), *flags, "kernel.ptx", "-o", _PRODUCT), "kernel.ptx"
    if dialect == LAUNCHER:
        return (*_c_compiler(), "launcher.c", "-o", _PRODUCT, *_linked()), "launcher.c"
    raise BadInput(f"nothing compiles {dialect}", hint=f"use {MACHINE_CODE} or {LAUNCHER}")


def _suffix(name: str) -> str:
    return ".cubin" if name.endswith(".ptx") else ".so"


@functools.cache
def _ptxas(flags: tuple[str, ...]) -> str:
    """Find the assembler of a device: Triton brings several, and writes PTX for that one."""
    from triton import knobs
    from triton.backends.nvidia.compiler import get_ptxas

    named = (_DEVICE.fullmatch(flag) for flag in flags)
    devices = [int(match[1]) for match in named if match]
    return str(get_ptxas(devices[-1]).path if devices else knobs.nvidia.ptxas.path)


@functools.cache
def _c_compiler() -> tuple[str, ...]:
    from triton.backends.nvidia import driver

    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")
    python = sysconfig.get_paths(scheme)["include"]
    folders = [*driver.include_dirs, python]
    options = ("-x", "c", "-O2", "-shared", "-fPIC", "-w", *(f"-I{f}" for f in folders))
    return (str(find_toolchain("cpp").compiler), *options)


@functools.cache
def _linked() -> tuple[str, ...]:
    from triton.backends.nvidia import driver

    try:
        folders = driver.library_dirs()
    except AssertionError:  # Triton's way to say so
        raise MissingPrerequisite(
            "libcuda.so.1 is not where the system looks for libraries",
            hint="install the NVIDIA driver, or set TRITON_LIBCUDA_PATH to the folder it is in",
        ) from None
    return (*(f"-L{folder}" for folder in folders), "-l:libcuda.so.1")


@functools.cache
def _versions() -> str:
    import triton
    from triton import knobs

    return f"{triton.__version__} {knobs.nvidia.ptxas.version} {find_toolchain('cpp').version}"


def _first_error(log: str) -> str:
    errors = [line for line in log.splitlines() if "error" in line.lower() or "fatal" in line]
    return errors[0].strip() if errors else "the compiler failed"
