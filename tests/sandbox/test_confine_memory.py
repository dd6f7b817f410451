"""Memory is bounded from inside by a limit and from outside by the monitor's watch."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

from kernel_smith.evaluation.sandbox.confine import Watch, die_with_parent, limits, seccomp, usage
from kernel_smith.evaluation.sandbox.confine import watch as watch_module

MIB = 1 << 20
PROT_READ = 1
GENEROUS = {"memory_bytes": 8 * MIB, "processes": 100}


@contextlib.contextmanager
def child(action):
    """A child that has done `action` and now waits; its pid and private memory before."""
    ready, ready_sender = os.pipe()
    hold, release = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            os.write(ready_sender, b"%d\n" % usage(os.getpid()).private_bytes)
            kept = action()
            os.write(ready_sender, b"done")
            os.close(release)
            os.read(hold, 1)
            del kept
        finally:
            os._exit(0)
    os.close(ready_sender)
    with open(ready, "rb") as answers:
        baseline = int(answers.readline())
        assert answers.read(4) == b"done"
    try:
        yield pid, baseline
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for descriptor in (hold, release):
            os.close(descriptor)


def filled(memory):
    """Piece by piece: what the writing itself needs may stay with the process."""
    for _ in range(len(memory) // MIB):
        memory.write(b"x" * MIB)
    return memory


def shared_memory(size):
    return filled(mmap.mmap(-1, size))


def private_memory(size):
    """Mapped, not allocated: the heap may have free pages that this process already counts."""
    return filled(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def private_memory_made_read_only(size):
    """It no longer counts as data, which is how the limit can be evaded."""
    memory = private_memory(size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert library.mprotect(address, size, PROT_READ) == 0
    return memory


def threads(count):
    started = [threading.Thread(target=signal.pause, daemon=True) for _ in range(count)]
    for thread in started:
        thread.start()
    return started


def forked_twice(action):
    """A grandchild that has done `action` and waits; its parent, the child, has not."""
    done, done_sender = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if os.fork() == 0:
            die_with_parent()
            kept = action()
            os.write(done_sender, b"x")
            signal.pause()
            del kept
    os.read(done, 1)


def test_allocating_too_much_raises_memory_error_and_less_does_not(confined):
    def attempt(size):
        try:
            return len(bytearray(size))
        except MemoryError:
            return "MemoryError"

    too_much = 128 * MIB + limits.reserved(confined.policy)

    def attempts():
        return [attempt(32 * MIB), attempt(too_much)]

    values = confined.value(attempts, limits.DATA, memory_bytes=64 * MIB)
    assert values == [32 * MIB, "MemoryError"]


def test_shared_memory_that_could_be_hidden_from_the_watch_is_refused(confined):
    def attempt():
        try:
            mmap.mmap(-1, MIB)
        except PermissionError:
            return "refused"

    assert confined.value(attempt, seccomp.FEATURE) == "refused"


@pytest.mark.parametrize(
    "bomb",
    [private_memory, shared_memory, private_memory_made_read_only],
    ids=lambda bomb: bomb.__name__,
)
def test_memory_of_every_kind_is_reported(bomb):
    with child(lambda: bomb(16 * MIB)) as (pid, baseline):
        reason = Watch(pid=pid, baseline=baseline, **GENEROUS).exceeded()
    assert reason is not None
    assert "bytes of memory are in use, 8388608 are allowed" in reason


def test_memory_within_bounds_is_not_reported():
    with child(lambda: private_memory(4 * MIB)) as (pid, baseline):
        assert Watch(pid=pid, baseline=baseline, **GENEROUS).exceeded() is None


def test_shared_memory_that_was_handed_over_is_allowed():
    with child(lambda: shared_memory(16 * MIB)) as (pid, baseline):
        for allowance, exceeded in ((16 * MIB, False), (4 * MIB, True)):
            watch = Watch(pid=pid, baseline=baseline, shared_allowance=allowance, **GENEROUS)
            assert (watch.exceeded() is not None) == exceeded


def test_who_waits_is_not_looked_at_again_until_it_runs(monkeypatch):
    looks = []
    tree = watch_module._tree

    def noted(pid):
        looks.append(pid)
        return tree(pid)

    program = (
        "held = []\nfor line in open(0): held.append(bytes(int(line)) + b'x'); print(flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:

        def take(size):
            process.stdin.write(f"{size}\n".encode())
            process.stdin.flush()
            process.stdout.readline()

        take(1)
        watch = Watch(pid=process.pid, baseline=usage(process.pid).private_bytes, **GENEROUS)
        monkeypatch.setattr(watch_module, "_tree", noted)
        eventually_waits(watch, looks)
        take(16 * MIB)
        assert watch.exceeded() is not None
        process.stdin.close()


def eventually_waits(watch, looks):
    """It may still be on its way to where it waits."""
    for _ in range(6000):
        looks.clear()
        assert watch.exceeded() is None
        if not looks:
            return
        time.sleep(0.01)
    raise AssertionError("it was looked at each time")


def test_memory_of_descendants_counts():
    with child(lambda: forked_twice(lambda: shared_memory(16 * MIB))) as (pid, baseline):
        assert usage(pid).shared_bytes < MIB
        # A forked process holds the memory it was forked with once more.
        watch = Watch(pid=pid, baseline=2 * baseline, **GENEROUS)
        assert watch.exceeded() is not None


def test_threads_and_descendants_are_counted():
    with child(lambda: threads(4)) as (pid, _):
        plenty = {"memory_bytes": 1 << 40}
        assert Watch(pid=pid, processes=5, **plenty).exceeded() is None
        reason = Watch(pid=pid, processes=4, **plenty).exceeded()
        assert reason == "5 processes and threads exist, 4 are allowed"
    with child(lambda: forked_twice(lambda: None)) as (pid, _):
        assert Watch(pid=pid, processes=2, **plenty).exceeded() is None
        assert Watch(pid=pid, processes=1, **plenty).exceeded() is not None


def test_a_process_that_has_ended_exceeds_nothing():
    with child(lambda: None) as (pid, _):
        pass
    assert Watch(pid=pid, memory_bytes=0, processes=0).exceeded() is None


def test_descendants_may_end_at_any_moment_of_a_look():
    """Compilers start many short programs: a look took one of them, that had just ended, amiss."""
    restless = "while :; do (/bin/true; /bin/true) & /bin/true; done"
    end = time.monotonic() + 2
    with subprocess.Popen(["sh", "-c", restless]) as process:
        watch = Watch(pid=process.pid, memory_bytes=1 << 40, processes=1 << 20)
        try:
            while time.monotonic() < end:
                assert watch.exceeded() is None
        finally:
            process.kill()
