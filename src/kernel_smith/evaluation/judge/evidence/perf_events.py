"""Sampling where a process executes, from outside it and without its knowledge.

`Sampler` collects instruction pointers of every thread of a process with the kernel's
`perf_event_open`: a timer that runs only while a thread of that process runs, one ring buffer per
core. Nothing in the sampled process takes part. `available` tells whether this machine permits it.

Open a sampler early, while the process has few threads: threads that start later are followed
without further cost, whereas each thread that exists already needs one event for every core.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import random
import struct
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

from kernel_smith.closing import Closing

OTHER_PROCESS = 0
"""Stands in a list of samples for the code of a process that the sampled one has forked."""

FIRST_KERNEL_ADDRESS = 1 << 63
"""Both supported architectures give the kernel the upper half of the address space."""

_SYSCALL_NUMBERS = {"x86_64": 298, "aarch64": 241}

_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")  # struct perf_event_attr as first published, 64 bytes
_TYPE_SOFTWARE, _TASK_CLOCK = 1, 1
_SAMPLE_IP_AND_THREAD = 1 | 2
_DISABLED, _INHERIT, _EXCLUDE_KERNEL = 1 << 0, 1 << 1, 1 << 5
_CLOSE_ON_EXEC = 8
_ENABLE, _DISABLE, _SET_OUTPUT = 0x2400, 0x2401, 0x2405
_PERIOD = 0x40082404

_HEAD_OFFSET, _TAIL_OFFSET = 1024, 1032
_RECORD_HEADER = struct.Struct("=IHH")  # type, flags, size of the whole record
_SAMPLE = struct.Struct("=QII")  # instruction pointer, process, thread
_LOST = struct.Struct("=QQ")  # event, number of records
_LOST_RECORD, _SAMPLE_RECORD = 2, 9

# Holds 2.7 s of one busy core at 4000 Hz, and stays well below the memory that the kernel lets an
# unprivileged user lock per core (kernel.perf_event_mlock_kb, 516 by default).
_RING_BYTES = 1 << 18

_SNAPSHOT_ATTEMPTS = 10
_PROBE_SECONDS = 5.0


class SamplerUnavailable(Exception):
    """This process cannot be sampled; the text says why and what would help."""


class Sampler(Closing):
    """Samples the instruction pointers of process `pid` while it runs on `cores`.

    Opens stopped. `lost` counts the samples that found a ring buffer full: call `drain` at least
    every two seconds of sampling. `sees_kernel` says whether time in the kernel is sampled too.
    """

    def __init__(self, pid: int, cores: Collection[int], frequency: int = 4000) -> None:
        self.lost = 0
        self.sees_kernel = True
        self._pid = pid
        self._period = round(1e9 / frequency)
        self._events: list[int] = []
        self._rings: list[_Ring] = []
        try:
            self._open_all_threads(sorted(cores))
            self.set_frequency(frequency)
        except BaseException:
            self.close()
            raise

    def set_frequency(self, frequency: float) -> None:
        """Take about so many samples per second from now on."""
        # An unpredictable period: work that repeats in step with the timer would be misattributed.
        self._period = round(1e9 / frequency * random.uniform(0.9, 1.1))
        for event in self._events:
            fcntl.ioctl(event, _PERIOD, struct.pack("=Q", self._period))

    def start(self) -> None:
        for event in self._events:
            fcntl.ioctl(event, _ENABLE, 0)

    def stop(self) -> None:
        for event in self._events:
            fcntl.ioctl(event, _DISABLE, 0)

    def drain(self) -> list[int]:
        """The instruction pointers since the last call, in no particular order.

        Kernel code is at or above `FIRST_KERNEL_ADDRESS`. User code of a forked process counts as
        `OTHER_PROCESS`, because its addresses mean nothing in the map of this one.
        """
        pointers: list[int] = []
        for ring in self._rings:
            self.lost += _parse(ring.take(), self._pid, pointers)
        return pointers

    def close(self) -> None:
        for ring in self._rings:
            ring.close()
        for event in self._events:
            os.close(event)
        self._rings, self._events = [], []

    def _open_all_threads(self, cores: list[int]) -> None:
        for _ in range(_SNAPSHOT_ATTEMPTS):
            threads = _threads(self._pid)
            for core in cores:
                self._open_core(core, threads)
            # A thread that started meanwhile is followed on some cores or on none: begin again.
            if set(_threads(self._pid)) <= set(threads):
                break
            self.close()
        else:
            raise SamplerUnavailable(f"process {self._pid} keeps starting threads; open earlier")
        if not self._events:
            raise _ended(self._pid)

    def _open_core(self, core: int, threads: list[int]) -> None:
        ring: _Ring | None = None
        for thread in threads:
            try:
                event = self._open_event(thread, core)
            except ProcessLookupError:
                continue
            except OSError as error:
                raise SamplerUnavailable(_explain(error)) from error
            self._events.append(event)
            if ring is None:
                ring = _Ring(event)
                self._rings.append(ring)
            else:
                fcntl.ioctl(event, _SET_OUTPUT, ring.event)

    def _open_event(self, thread: int, core: int) -> int:
        try:
            return _perf_event_open(thread, core, self._period, self.sees_kernel)
        except PermissionError:
            if not self.sees_kernel:
                raise
        self.sees_kernel = False
        return _perf_event_open(thread, core, self._period, self.sees_kernel)


class _Ring:
    """The memory into which the kernel writes the records of one core."""

    def __init__(self, event: int) -> None:
        self.event = event
        try:
            self._memory = mmap.mmap(event, mmap.PAGESIZE + _RING_BYTES)
        except OSError as error:
            raise SamplerUnavailable(
                f"no memory for samples ({error.strerror}); raise kernel.perf_event_mlock_kb"
            ) from error
        # ctypes reads and writes each of these in one instruction, which struct does not promise.
        self._head = ctypes.c_uint64.from_buffer(self._memory, _HEAD_OFFSET)
        self._tail = ctypes.c_uint64.from_buffer(self._memory, _TAIL_OFFSET)

    def take(self) -> bytes:
        """Move out everything written so far.

        The kernel publishes the head after the data. The interpreter runs so many instructions
        between reading the one and the other that no processor can swap them.
        """
        head, tail = self._head.value, self._tail.value
        begin, length = tail % _RING_BYTES, head - tail
        until_wrap = min(length, _RING_BYTES - begin)
        data = mmap.PAGESIZE
        records = self._memory[data + begin : data + begin + until_wrap]
        records += self._memory[data : data + length - until_wrap]
        self._tail.value = head
        return records

    def close(self) -> None:
        del self._head, self._tail  # the memory cannot be unmapped while they point into it
        self._memory.close()


def available() -> str | None:
    """None if another process can be sampled here, else the reason and what would help."""
    # A child of its own, because the permission to observe another process is what matters.
    command = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        with Sampler(child.pid, os.sched_getaffinity(0)) as sampler:
            sampler.start()
            deadline = time.monotonic() + _PROBE_SECONDS
            while time.monotonic() < deadline:
                time.sleep(0.01)
                if sampler.drain():
                    return None
        return "perf_event_open works, but no sample of a busy process arrives"
    except SamplerUnavailable as error:
        return str(error)
    finally:
        child.kill()
        child.wait()


def _threads(pid: int) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        raise _ended(pid) from None


def _ended(pid: int) -> SamplerUnavailable:
    return SamplerUnavailable(f"process {pid} has ended")


def _perf_event_open(thread: int, core: int, period: int, with_kernel: bool) -> int:
    number = _SYSCALL_NUMBERS.get(platform.machine())
    if platform.system() != "Linux" or number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    flags = _DISABLED | _INHERIT | (0 if with_kernel else _EXCLUDE_KERNEL)
    attributes = _ATTRIBUTES.pack(
        _TYPE_SOFTWARE,
        _ATTRIBUTES.size,
        _TASK_CLOCK,
        period,
        _SAMPLE_IP_AND_THREAD,
        0,  # read format: counts are never read
        flags,
        0,  # wake-ups: nobody polls
        0,
        0,
    )
    no_group = ctypes.c_long(-1)
    arguments = [
        ctypes.c_long(thread),
        ctypes.c_long(core),
        no_group,
        ctypes.c_long(_CLOSE_ON_EXEC),
    ]
    libc = ctypes.CDLL(None, use_errno=True)
    event = int(libc.syscall(ctypes.c_long(number), attributes, *arguments))
    if event < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return event


def _parse(records: bytes, pid: int, pointers: list[int]) -> int:
    """Append the samples among the records to `pointers`; return how many were lost."""
    lost = at = 0
    while at + _RECORD_HEADER.size <= len(records):
        kind, _, size = _RECORD_HEADER.unpack_from(records, at)
        if size < _RECORD_HEADER.size:
            raise RuntimeError("the kernel wrote a record without a size")
        body = at + _RECORD_HEADER.size
        if kind == _SAMPLE_RECORD:
            pointer, process, _ = _SAMPLE.unpack_from(records, body)
            ours = process == pid or pointer >= FIRST_KERNEL_ADDRESS
            pointers.append(pointer if ours else OTHER_PROCESS)
        elif kind == _LOST_RECORD:
            lost += _LOST.unpack_from(records, body)[1]
        at += size
    return lost


def _explain(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        level = _paranoia()
        if level is not None and level > 2:
            return (
                f"kernel.perf_event_paranoid is {level}: run "
                "`sudo sysctl kernel.perf_event_paranoid=2`, or grant CAP_PERFMON"
            )
        return (
            "perf_event_open is not permitted: grant CAP_PERFMON (in a container: "
            "`--cap-add PERFMON`, and a seccomp profile that allows perf_event_open)"
        )
    if error.errno == errno.ENOSYS:
        return "no perf_event_open: needs Linux on x86_64 or aarch64 with CONFIG_PERF_EVENTS"
    if error.errno == errno.EMFILE:
        return "too many open files: raise the limit with `ulimit -n`, or open the sampler earlier"
    return f"perf_event_open failed: {error.strerror}"


def _paranoia() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    return None
