"""What mined text must not contain, although the closure allowed its imports.

The screen that candidates pass finds files, processes, dynamic code and patched modules. Beyond it,
a task is refused that writes arrays to files or looks through the interpreter: unlike a candidate,
a task is trusted by the judge later on.
"""

from __future__ import annotations

import ast

from kernel_smith.evaluation.screen import screen
from kernel_smith.records import Reason
from kernel_smith.trajectories.mine.refusal import Refused

_DECISIVE = frozenset(
    {
        Reason.SYNTAX_ERROR,
        Reason.STACK_INSPECTION,
        Reason.MONKEYPATCH,
        Reason.FORBIDDEN_CALL,
        Reason.FORBIDDEN_IMPORT,
    }
)
_ATTRIBUTES = frozenset(
    {
        *("tofile", "fromfile", "from_file", "load", "loads", "save", "savez", "memmap", "dump"),
        *("ctypes", "ctypeslib", "system", "popen", "load_library", "_C", "__mro__", "__bases__"),
        *("__base__", "__code__", "__loader__", "__spec__", "__reduce__", "__reduce_ex__", "f2py"),
        *("sys", "os", "subprocess", "_sys", "_os", "builtins", "hub", "cpp_extension"),
    }
)
_NAMES = frozenset({"globals", "locals", "vars", "__loader__", "__spec__", "__file__", "exit"})


def check_harmless(text: str) -> None:
    """Raises `Refused` with what was found."""
    for finding in screen(text, "mined.py"):
        if finding.reason in _DECISIVE:
            raise Refused("unsafe", finding.message.partition(": ")[2])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            raise Refused("unsafe", f"uses `{node.attr}`")
        if isinstance(node, ast.Name) and node.id in _NAMES:
            raise Refused("unsafe", f"uses `{node.id}`")
