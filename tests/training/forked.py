"""Processes that are forked from this one, which has imported the libraries of trainings already.

To import them takes a new process ten seconds, and many times as long as what tests ask of it.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import IO, Any

import pytest

# Python 3.12 warns whoever has threads. Here they hold nothing that such a process waits for.
may_fork = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def forked(work: Callable[..., object], *arguments: Any) -> ForkProcess:
    """A process that works."""
    process = ForkProcess(target=_with_one_thread, args=(work, *arguments), daemon=True)
    process.start()
    return process


class ForkedContext:
    """As much of the context "spawn" of `multiprocessing` as a local model uses."""

    def Pipe(self) -> tuple[Connection, Connection]:  # noqa: N802 - its name there
        self._near, far = multiprocessing.Pipe()
        return self._near, far

    def Process(  # noqa: N802 - its name there
        self, target: Callable[..., object], args: tuple[Any, ...], daemon: bool
    ) -> ForkProcess:
        work = (self._without_the_near_end, target, *args)
        return ForkProcess(target=_with_one_thread, args=work, daemon=daemon)

    def _without_the_near_end(self, target: Callable[..., object], *arguments: Any) -> None:
        self._near.close()  # else the far one would have no end
        target(*arguments)


class ForkedProgram:
    """As much of a `subprocess.Popen` of `python -m MODULE ...` as an adviser uses."""

    def __init__(
        self, command: Sequence[str], *, stderr: IO[str], stdin: int, stdout: int, text: bool
    ) -> None:
        assert list(command[:2]) == [sys.executable, "-m"]
        assert text and stdin == stdout == subprocess.PIPE
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        theirs = (theirs_in, theirs_out, stderr.fileno())
        self._process = forked(_run, command[2:], theirs, (ours_in, ours_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin, self.stdout = os.fdopen(ours_in, "w"), os.fdopen(ours_out)

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def __enter__(self) -> ForkedProgram:
        return self

    def __exit__(self, *error: object) -> None:
        self.stdout.close()
        self.stdin.close()
        self.wait()


def run_module(words: Sequence[str]) -> None:
    """Be `python -m WORDS`."""
    sys.argv = list(words)
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def _run(words: Sequence[str], standard: Sequence[int], others: Sequence[int]) -> None:
    for fd in others:
        os.close(fd)
    for number, fd in enumerate(standard):
        os.dup2(fd, number)
    sys.stdin = os.fdopen(0)
    run_module(words)


def _with_one_thread(work: Callable[..., object], *arguments: Any) -> None:
    """The threads with which the other process has computed are not there."""
    import torch

    torch.set_num_threads(1)
    work(*arguments)
