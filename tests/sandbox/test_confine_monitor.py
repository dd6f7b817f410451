"""Monitor and confined process: each one's end, and what the monitor still sees."""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_smith.evaluation.sandbox.confine import (
    Watch,
    apply,
    confine,
    enter_namespaces,
    mounts,
    namespaces,
)

PATIENCE = 120


class Channel:
    """A pipe for lines of JSON. It has ended when every process that could write has."""

    def __init__(self):
        self.receiver, self.sender = os.pipe()

    def send(self, value):
        os.write(self.sender, json.dumps(value).encode() + b"\n")

    def receive(self):
        assert select.select([self.receiver], [], [], PATIENCE)[0], "nothing came"
        with open(self.receiver, closefd=False) as lines:
            return json.loads(lines.readline())

    def nothing_more_comes(self):
        os.close(self.sender)
        assert select.select([self.receiver], [], [], PATIENCE)[0], "a writer lives on"
        return os.read(self.receiver, 1) == b""


def in_child(action):
    """Fork a child that does `action` and ends; its pid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    return pid


def start_monitor(confined, *, inside, oversee=lambda pid: os.waitpid(pid, 0), keep=(), **changes):
    """Fork a monitor, which forks a process that confines itself and then runs `inside`."""
    policy = replace(confined.policy, **changes)
    senders = [descriptor for channel in keep for descriptor in (channel.sender, channel.receiver)]

    def be_monitor():
        confined.prepare()
        report = enter_namespaces()
        oversee(in_child(lambda: inside(report + confine(policy, keep_fds=senders))))

    return in_child(be_monitor)


def require(enforced, *features):
    for feature in features:
        if feature not in enforced:
            pytest.skip(f"this machine lacks: {feature}")


def test_the_death_of_the_monitor_ends_the_confined_process(confined):
    channel = Channel()

    def inside(report):
        channel.send(report.enforced)
        signal.pause()

    monitor = start_monitor(confined, inside=inside, keep=[channel])
    enforced = channel.receive()
    os.kill(monitor, signal.SIGKILL)
    os.waitpid(monitor, 0)
    require(enforced, apply.PARENT)
    assert channel.nothing_more_comes()


def test_a_process_whose_monitor_died_before_it_was_confined_ends_itself(confined):
    channel = Channel()

    def be_confined():
        select.select([namespaces.monitor_descriptor()], [], [])  # until the monitor has ended
        channel.send(confine(confined.policy, keep_fds={channel.sender}).enforced)

    def be_monitor():
        confined.prepare()
        enter_namespaces()
        in_child(be_confined)

    os.waitpid(in_child(be_monitor), 0)
    assert channel.nothing_more_comes()


def test_killing_the_confined_process_ends_all_that_it_started(confined):
    channel, verdict = Channel(), Channel()

    def inside(report):
        for _ in range(3):
            in_child(signal.pause)
        channel.send(report.enforced)
        signal.pause()

    def oversee(pid):
        verdict.receive()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    monitor = start_monitor(
        confined, inside=inside, oversee=oversee, keep=[channel], allow_exec=True
    )
    enforced = channel.receive()
    verdict.send("kill it")
    os.waitpid(monitor, 0)
    require(enforced, namespaces.PID)
    assert channel.nothing_more_comes()


def test_the_monitor_sees_scratch_and_the_hosts_proc_and_the_host_sees_no_scratch(confined):
    result = confined.policy.scratch / "result"
    to_monitor, to_confined, to_test = Channel(), Channel(), Channel()

    def inside(report):
        result.write_text("compiled")
        to_monitor.send(report.enforced)
        to_confined.receive()

    def oversee(pid):
        enforced = to_monitor.receive()
        watch = Watch(pid=pid, memory_bytes=0, processes=9)
        maps = Path(f"/proc/{pid}/maps").read_text()
        seen = [result.read_text(), os.readlink("/proc/self"), maps, watch.exceeded()]
        to_test.send([enforced, os.getpid(), *seen])
        to_confined.send("end")
        os.waitpid(pid, 0)

    keep = [to_monitor, to_confined]
    monitor = start_monitor(confined, inside=inside, oversee=oversee, keep=keep)
    enforced, monitor_pid, text, proc_self, maps, exceeded = to_test.receive()
    os.waitpid(monitor, 0)
    require(enforced, mounts.SCRATCH, mounts.PROC)
    assert text == "compiled"
    assert proc_self == str(monitor_pid)
    assert "libc" in maps
    assert "bytes of memory" in exceeded
    assert not Path(result).exists()


def test_a_process_with_several_threads_is_not_half_confined(confined):
    held = threading.Event()
    thread = threading.Thread(target=held.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="single thread"):
            confine(confined.policy, keep_fds=())
    finally:
        held.set()
        thread.join()
