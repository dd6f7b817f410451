"""What a process that may use GPUs may do besides, and what it still may not."""

from __future__ import annotations

import errno
import mmap
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.evaluation.sandbox.confine import devices, landlock, mounts, seccomp

NAME = "kernel-smith-was-here"


def error_of(action: Callable[[], Any]) -> str | None:
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return None


def test_it_shares_memory_and_listens_where_nobody_calls(confined: Any) -> None:
    def attempt() -> list[str | None]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            return [
                error_of(lambda: mmap.mmap(-1, mmap.PAGESIZE).close()),
                error_of(lambda: listener.bind("\0kernel-smith-test")),
                error_of(listener.listen),
            ]

    assert confined.value(attempt, seccomp.FEATURE, gpu=True) == [None, None, None]


def test_it_writes_nothing_outside_its_scratch_folder(confined: Any, open_folder: Path) -> None:
    folders = [open_folder, Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm")]

    def attempt() -> list[str]:
        Path("mine").write_text("x")
        targets = [folder / NAME for folder in folders]
        return [str(t) for t in targets if error_of(partial(t.write_text, "x")) is None]

    needs = (landlock.FILES, mounts.READ_ONLY)
    assert confined.value(attempt, *needs, gpu=True) == []
    assert not any((folder / NAME).exists() for folder in folders)


SYSTEM_WIDE = ("sys/kernel/core_pattern", "sys/vm/overcommit_memory", "sysrq-trigger")


def test_where_there_is_a_device_it_writes_to_files_of_its_own_process_alone(
    confined: Any, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "nodes", lambda: (Path("/dev/zero"),))
    targets = [open_folder / NAME, *(Path("/proc", name) for name in SYSTEM_WIDE)]

    def attempt() -> list[Any]:
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
        written = [str(t) for t in targets if error_of(partial(t.write_text, "x")) is None]
        own = error_of(lambda: Path("/proc/self/comm").write_text("renamed"))
        device = error_of(lambda: Path("/dev/zero").write_bytes(b"x"))
        return [len(processes), written, own, device]

    needs = (landlock.FILES, mounts.READ_ONLY, mounts.PROC)
    visible, written, own, device = confined.value(attempt, *needs, gpu=True)
    assert (visible, written, device) == (1, [], None)
    assert own is None or confined.user == 0  # a former root does not own those files


@pytest.fixture
def mailbox(open_folder: Path) -> Iterator[socket.socket]:
    """A socket of the host's that everybody may write to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        path = open_folder / "mailbox"
        box.bind(str(path))
        path.chmod(0o777)
        box.setblocking(False)
        yield box


def test_it_reaches_no_socket_of_the_host(confined: Any, mailbox: socket.socket) -> None:
    address = mailbox.getsockname()

    def attempt() -> list[str | None]:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        return [
            error_of(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)),
            error_of(lambda: stream.connect(address)),
            error_of(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)),
        ]

    assert confined.value(attempt, seccomp.FEATURE, gpu=True) == ["EACCES"] * 3
    with pytest.raises(BlockingIOError):
        mailbox.recv(1)


def test_it_starts_no_process_and_no_program(confined: Any) -> None:
    def attempt() -> list[str | None]:
        return [
            error_of(os.fork),
            error_of(lambda: subprocess.run(["/bin/true"])),
            error_of(lambda: os.execv(sys.executable, [sys.executable, "-c", ""])),
        ]

    assert confined.value(attempt, seccomp.FEATURE, gpu=True) == ["EPERM"] * 3


def test_a_machine_without_a_device_has_no_nodes() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a device")
    assert devices.nodes() == ()
