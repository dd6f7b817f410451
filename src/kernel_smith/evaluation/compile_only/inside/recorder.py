"""Writes down what is compiled and launched, and keeps the report file up to date.

The file is complete after every step, so that something is known of a candidate that never ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import triton
from triton.compiler.errors import CompilationError

from kernel_smith.evaluation.compile_only.inside.measure import Usage, ptxas_errors, read_amdgcn

_LONGEST_TEXT = 4000
_LONGEST_NAME = 200


@dataclass
class Kernel:
    """One kernel, compiled with one set of constants."""

    name: str
    line: int | None
    constants: dict[str, Any]
    warps: int
    stages: int
    registers: int | None
    spill_bytes: int | None
    shared_bytes: int
    compile_seconds: float
    launches: int = 0
    workloads: list[str] = field(default_factory=list)


class Recorder:
    """Replaces `triton.compile`; the driver asks it about binaries and tells it of launches."""

    def __init__(self, path: str, candidate: str) -> None:
        self._path = path
        self._candidate = candidate
        self._compile = triton.compiler.compile
        self._kernels: dict[str, Kernel] = {}
        self._of_binary: dict[bytes, Kernel] = {}
        self._failures: list[dict[str, Any]] = []
        self._failed: list[BaseException] = []
        self._phase = "task"
        self.workload = ""
        self.tuning = False
        self.usage: Usage | None = None  # of what the assembler made last

    def enter(self, phase: str) -> None:
        self._phase = phase
        self.write()

    def write(self, outcome: dict[str, Any] | None = None) -> None:
        report = {
            "phase": self._phase,
            "kernels": [asdict(kernel) for kernel in self._kernels.values()],
            "failures": self._failures,
            "outcome": outcome,
        }
        temporary = f"{self._path}.new"
        with open(temporary, "w", encoding="ascii") as file:
            json.dump(report, file)
        os.replace(temporary, self._path)

    def compile(self, src: Any, *args: Any, **kwargs: Any) -> Any:
        """As `triton.compile`, with a record of what came of it."""
        phase = self._phase
        self.enter(f"compiling {clean(src.name, _LONGEST_NAME)}")
        self.usage = None
        began = time.monotonic()
        try:
            # When the assembler fails, Triton prints all that it was to assemble.
            with contextlib.redirect_stdout(io.StringIO()):
                kernel = self._compile(src, *args, **kwargs)
        except BaseException as error:
            self._failed.append(error)
            self._failures.append(self._describe_failure(src, error))
            raise
        finally:
            self.enter(phase)
        self._add(src, kernel, time.monotonic() - began)
        return kernel

    def is_compiler_error(self, error: BaseException) -> bool:
        """Did the compiler raise this exception, or what it came from?"""
        return any(link is failed for link in chain(error) for failed in self._failed)

    def launched(self, key: str) -> None:
        kernel = self._kernels.get(key)
        if kernel is None or self.tuning:
            return
        kernel.launches += 1
        if self.workload not in kernel.workloads:
            kernel.workloads.append(self.workload)

    def of_binary(self, binary: bytes) -> Kernel | None:
        return self._of_binary.get(hashlib.sha256(binary).digest())

    def _add(self, src: Any, compiled: Any, seconds: float) -> None:
        if compiled.hash in self._kernels:
            return
        if "amdgcn" in compiled.asm:
            usage = read_amdgcn(compiled.asm["amdgcn"])
        else:
            usage = self.usage or Usage(None, None)
        metadata = compiled.metadata
        kernel = Kernel(
            name=clean(src.name, _LONGEST_NAME),
            line=self._definition_line(src),
            constants=_constants(src),
            warps=metadata.num_warps,
            stages=metadata.num_stages,
            registers=usage.registers,
            spill_bytes=usage.spill_bytes,
            shared_bytes=metadata.shared,
            compile_seconds=seconds,
        )
        self._kernels[compiled.hash] = kernel
        self._of_binary[hashlib.sha256(compiled.kernel).digest()] = kernel

    def _definition_line(self, src: Any) -> int | None:
        """The line of the kernel's `def`, if it lies in the candidate's file."""
        function = getattr(src, "fn", None)
        if function is None or not self._is_own(function):
            return None
        return definition_line(function)

    def _is_own(self, function: Any) -> bool:
        file = str(function.fn.__code__.co_filename)
        return os.path.basename(file) == self._candidate

    def _describe_failure(self, src: Any, error: BaseException) -> dict[str, Any]:
        """Where and why, in the coordinates of the candidate's file."""
        line = None
        message = ptxas_errors(str(error)) or f"{type(error).__name__}: {error}"
        located = [e for e in chain(error) if isinstance(e, CompilationError)]
        for deeper in located:  # the outermost is only where the kernel calls a helper
            function = self._function_with_source(src, deeper.src)
            if function is not None and hasattr(deeper.node, "lineno"):
                line = definition_line(function) + deeper.node.lineno - 1
        if located:
            message = located[-1].error_message or str(located[-1])
            cause = located[-1].__cause__
            if cause is not None:
                message = f"{type(cause).__name__}: {cause}"
        return {
            "name": clean(src.name, _LONGEST_NAME),
            "line": line,
            "constants": _constants(src),
            "message": clean(message, _LONGEST_TEXT),
        }

    def _function_with_source(self, src: Any, text: str | None) -> Any:
        kernel = getattr(src, "fn", None)
        if kernel is None:
            return None
        known = [kernel, *kernel.fn.__globals__.values()]
        jitted = [item for item in known if isinstance(item, triton.runtime.JITFunction)]
        return next((fn for fn in jitted if fn.src == text and self._is_own(fn)), None)


def clean(text: object, longest: int) -> str:
    """Short, and without halves of characters, which JSON cannot carry."""
    return str(text)[:longest].encode(errors="replace").decode()


def definition_line(function: Any) -> int:
    """Triton's sources begin at the `def`, behind the decorators."""
    for offset, line in enumerate(function.raw_src):
        if line.strip().startswith("def "):
            return int(function.starting_line_number + offset)
    return int(function.starting_line_number)


def chain(error: BaseException | None) -> list[BaseException]:
    """An exception and what it came from."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _constants(src: Any) -> dict[str, Any]:
    """The values of parameters that are declared constexpr, by name."""
    function = getattr(src, "fn", None)
    values: dict[str, Any] = {}
    for path, value in getattr(src, "constants", {}).items():
        if function is not None and len(path) == 1 and function.params[path[0]].is_constexpr:
            values[function.arg_names[path[0]]] = _plain(value)
    return values


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 1 << 62:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return clean(value, _LONGEST_NAME)
