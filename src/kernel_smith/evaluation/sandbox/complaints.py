"""What is said of a program that fails, in the words of its own, untrusted process."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable
from typing import Any

import torch

import kernel_smith

LONGEST_TRACEBACK = 8000
_COMPILERS = {
    "CompilationError": "compiler",
    "PTXASError": "compiler",
    "OutOfResources": "resources",
}
_OUR_FOLDER = os.path.join(os.path.dirname(kernel_smith.__file__), "")


class SignatureMismatch(TypeError):
    """The program does not take the arguments that the task hands over."""


def check_signature(function: Callable[..., Any], arguments: list[Any], what: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise SignatureMismatch(
            f"{what} is called with {len(arguments)} arguments, but takes {signature}: {error}"
        ) from None


def describe_error(error: BaseException, operation: str) -> dict[str, str]:
    """Say what went wrong, in the words of the untrusted process: feedback, never a verdict."""
    if isinstance(error, SignatureMismatch):
        kind = "signature"
    elif isinstance(error, MemoryError | torch.OutOfMemoryError):
        kind = "memory"
    else:
        kind = next((_COMPILERS[name] for name in _names(error) if name in _COMPILERS), "exception")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_OUR_FOLDER)]
    lines = traceback.format_list(own) + traceback.format_exception_only(error)
    return {
        "kind": kind,
        "operation": operation,
        "message": f"{type(error).__name__}: {_text(error)}"[:LONGEST_TRACEBACK],
        "traceback": "".join(lines)[-LONGEST_TRACEBACK:],
    }


def _names(error: BaseException) -> list[str]:
    """Name the classes that an exception of Triton's belongs to."""
    classes = type(error).__mro__
    return [c.__name__ for c in classes if c.__module__.startswith("triton.")]


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "<an exception without words>"
