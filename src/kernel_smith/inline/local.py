"""What `cpp` and its kin do outside of the evaluator: compile here, into the user's cache.

A GPU dialect is compiled for the GPU that torch sees here; without one, its threads are emulated on
the CPU.
"""

from __future__ import annotations

import ast
import linecache
import sys
from pathlib import Path

from kernel_smith.inline import CompileError
from kernel_smith.inline.build import build
from kernel_smith.inline.diagnostics import relocate
from kernel_smith.inline.dialects import SOURCE_NAME
from kernel_smith.inline.gpu import vendor_of_torch
from kernel_smith.inline.literals import find_sources

_WITH_SUBSTITUTES = ("cuda", "maca", "hip")  # for the hardware that they are for


def build_locally(dialect: str, source: str, flags: tuple[str, ...]) -> str:
    """Return the path of the compiled library; a `CompileError` with the caller's lines
    otherwise."""
    result = build(source, flags, dialect, route=route_here(dialect))
    if result.path is not None:
        return str(result.path)
    if result.timed_out:
        message = f"the {dialect} kernel took more than {result.seconds:.0f} s to compile"
        raise CompileError(message, result.log)
    raise CompileError(
        f"the {dialect} kernel does not compile:", _in_callers_lines(result.log, dialect, source)
    )


def route_here(dialect: str) -> str:
    """Return the route by which a dialect runs on the tensors that torch has on this machine."""
    torch = sys.modules.get("torch")
    if dialect not in _WITH_SUBSTITUTES:
        return "native"
    if torch is None or not torch.cuda.is_available():
        return "cpu"
    vendor = vendor_of_torch()
    if vendor == dialect:
        return "native"
    return "nvidia" if vendor == "cuda" else "cpu"


def _in_callers_lines(log: str, dialect: str, source: str) -> str:
    """Return the log in the lines of the file that holds the source, if it holds it as a
    literal."""
    file = _calling_file()
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return log
    for literal in find_sources(tree):
        if literal.source == source:
            return relocate(log, SOURCE_NAME, literal.first_line, Path(file).name)
    return log


def _calling_file() -> str:
    """Return the file of the nearest caller outside of this package."""
    package = __name__.rpartition(".")[0]
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(package):
        frame = frame.f_back
    return frame.f_code.co_filename
