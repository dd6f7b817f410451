"""Compile one kernel source into a shared library, or explain why not.

`build` looks in the cache first. The compiler itself is started by `run`, which the evaluator
replaces by one that confines it; the default, `run_compiler`, limits its time and memory.
"""

from __future__ import annotations

import functools
import math
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.inline.cache import ObjectCache, object_key
from kernel_smith.inline.dialects import SOURCE_NAME, recipe
from kernel_smith.inline.resources import KernelResources, parse_resources
from kernel_smith.inline.toolchain import Toolchain, check_flags, command, find_toolchain

OUTPUT_LIMIT = 64 * 1024
MEMORY_LIMIT = 4 << 30
FILE_LIMIT = 256 << 20

# Limits are set by a shell, in the child: doing so in Python between fork and exec is not safe in a
# process with threads. A limit that is tighter already stays as it is.
_LIMITED = """
ulimit -v {kilobytes} 2>/dev/null
ulimit -t {seconds} 2>/dev/null
ulimit -f {blocks} 2>/dev/null
ulimit -c 0 2>/dev/null
exec "$@"
"""
# Object files between compiler and linker have random names, which would make logs differ.
_TEMPORARY_OBJECT = re.compile(
    r"(?:/tmp/)?\b(?:cc\w{6}\.o|kernel-\w{6,}\.o|tmpxft_[\w-]+_kernel(?:\.[\w.]+)?\.(?:o|cpp))\b"
)


@dataclass(frozen=True)
class Ran:
    """How a compiler run ended; `output` is what it printed, stdout and stderr together."""

    returncode: int
    output: str
    timed_out: bool


@dataclass(frozen=True)
class BuildResult:
    """`path` is the library, or None if the compiler failed; then `log` says why.

    `resources` is what the compiler said of the kernels, where it compiled for a GPU.
    """

    path: Path | None
    log: str
    seconds: float
    cached: bool
    timed_out: bool
    resources: tuple[KernelResources, ...] = ()


Run = Callable[[list[str], Path, float], Ran]


def run_compiler(arguments: list[str], folder: Path, timeout: float) -> Ran:
    """Run a compiler in a folder, within limits, and leave no process of it behind."""
    limits = _LIMITED.format(
        kilobytes=MEMORY_LIMIT >> 10, seconds=math.ceil(timeout) + 1, blocks=FILE_LIMIT // 512
    )
    process = subprocess.Popen(
        ["/bin/sh", "-c", limits, "sh", *arguments],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    deadline = time.monotonic() + timeout
    with process:
        try:
            output, finished = _read_until(process, deadline)
            if finished:
                process.wait(max(0.0, deadline - time.monotonic()))
            timed_out = not finished
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    return Ran(process.returncode, output.decode(errors="replace"), timed_out)


def build(
    source: str,
    flags: Sequence[str] = (),
    dialect: str = "cpp",
    cache: ObjectCache | None = None,
    timeout: float = 60.0,
    run: Run = run_compiler,
    scratch: Path | None = None,
    route: str = "native",
    arch: str | None = None,
) -> BuildResult:
    """Compile a source, or take the library from the cache (the user's, unless one is given).

    `scratch` is where the compiler's files lie meanwhile; by default, among temporary files.
    `route` and `arch` are those of `find_toolchain`.
    """
    started = time.monotonic()
    toolchain = find_toolchain(dialect, route, arch)
    flags = check_flags(flags, dialect)
    cache = ObjectCache() if cache is None else cache
    key = object_key(toolchain, source, flags)
    path = cache.get(key)
    if path is not None:
        log = cache.notes(key)
        found = parse_resources(dialect, route, log)
        return BuildResult(path, log, time.monotonic() - started, True, False, tuple(found))
    with tempfile.TemporaryDirectory(prefix="kernel-smith-", dir=scratch) as name:
        folder = Path(name)
        ran, built = _compile(toolchain, source, flags, folder, timeout, run)
        log = _tidy(ran.output, folder) + _ending(toolchain, ran)
        if built is not None:
            # Kept for what it says of a GPU's resources; a C++ compiler's says nothing that lasts.
            path = cache.put(key, built, log if toolchain.arch else "")
        elif not ran.timed_out:
            _require_working(toolchain)
    seconds = time.monotonic() - started
    found = parse_resources(dialect, route, log)
    return BuildResult(path, log, seconds, False, ran.timed_out, tuple(found))


def _compile(
    toolchain: Toolchain, source: str, flags: Sequence[str], folder: Path, timeout: float, run: Run
) -> tuple[Ran, Path | None]:
    """Run the compiler in an empty folder; the library is None if it did not make one."""
    # Relative names keep the folder's out of messages and of the library.
    source_path = Path(SOURCE_NAME)
    output_path = Path("kernel.so")
    text = _rewritten(source) if toolchain.route == "cpu" else source
    (folder / source_path).write_text(text, encoding="utf-8", errors="replace")
    ran = run(command(toolchain, source_path, output_path, flags), folder, timeout)
    succeeded = ran.returncode == 0 and not ran.timed_out and (folder / output_path).is_file()
    return ran, folder / output_path if succeeded else None


def _rewritten(source: str) -> str:
    """Return a GPU's source as the C++ compiler takes it, line by line."""
    from kernel_smith.inline import simt

    return simt.rewrite(source)


def _ending(toolchain: Toolchain, ran: Ran) -> str:
    """Return a line for the log if the compiler died, which it could not write itself."""
    # A shell or a sandbox between us and the compiler tells of a signal by a code above 128.
    number = -ran.returncode if ran.returncode < 0 else ran.returncode - 128
    if ran.timed_out or number not in {int(known) for known in signal.Signals}:
        return ""
    name = signal.Signals(number).name
    return f"\n{toolchain.compiler.name}: error: the compiler crashed ({name})\n"


@functools.cache
def _require_working(toolchain: Toolchain) -> None:
    """Make sure that a failure is the source's: this compiler can build the smallest kernel."""
    with tempfile.TemporaryDirectory(prefix="kernel-smith-") as name:
        row = recipe(toolchain.dialect, toolchain.route)
        ran, built = _compile(toolchain, row.smallest, (), Path(name), 60.0, run_compiler)
        if built is None:
            what = "a shared library" if row.architecture else "a shared library with OpenMP"
            raise MissingPrerequisite(
                f"{toolchain.compiler} cannot build {what}:\n{ran.output}",
                hint=f"install a complete compiler: {row.install}",
            )


def _read_until(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bool]:
    """Return what the process prints, its beginning only if it is long, and whether it came to
    an end."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    output = bytearray()
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left)[0]:
            break
        chunk = os.read(descriptor, OUTPUT_LIMIT)
        if not chunk:
            return bytes(output), True
        # One byte beyond the limit shows that something was cut.
        output += chunk[: OUTPUT_LIMIT + 1 - len(output)]
    return bytes(output), False


def _tidy(output: str, folder: Path) -> str:
    if len(output) > OUTPUT_LIMIT:
        output = output[:OUTPUT_LIMIT] + "\n[the rest of the compiler's output was cut]\n"
    return _TEMPORARY_OBJECT.sub("kernel.o", output.replace(f"{folder}/", ""))
