"""The system call filter, interpreted for both architectures."""

from __future__ import annotations

import errno
import functools
import re
import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.sandbox.confine import bpf, seccomp
from kernel_smith.evaluation.sandbox.confine.syscalls import NEWEST_KNOWN, NUMBERS, numbers

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ARCHITECTURES = tuple(AUDIT)
EPERM, EACCES, ENOSYS = (bpf.refuse(e) for e in (errno.EPERM, errno.EACCES, errno.ENOSYS))
SUCCEED_WITHOUT_EFFECT = bpf.refuse(0)
WORDS = st.integers(0, 2**64 - 1)
ARGUMENTS = st.lists(WORDS, min_size=6, max_size=6)

CLONE_THREAD, CLONE_NEWUSER, SIGCHLD = 0x10000, 0x10000000, 17
MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE, MAP_ANONYMOUS = 1, 2, 3, 0x20
SOCK_CLOEXEC = 0o2000000

BY_ARGUMENTS = {"clone", "mmap", "prctl", "ioctl", "prlimit64", "socketpair"}
HARMLESS = {"capget", "capset"} | {n for n in numbers("x86_64") if n.startswith("landlock")}
NEEDED_TO_EXECUTE = {"fork", "vfork", "execve", "execveat"}
DIFFERENT_WITH_GPU = {"socket", "bind", "listen", "mmap"}


build_program = functools.cache(seccomp.build_program)  # to build one takes milliseconds


def interpret(program, number, arguments=(), audit=0):
    """Run the program as the kernel would; its verdict."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, audit, 0, *padded)
    position, accumulator = 0, 0
    while True:
        code, if_true, if_false, constant = program[position]
        position += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, constant)
        elif code == 0x54:
            accumulator &= constant
        elif code == 0x06:
            return constant
        else:
            holds = {
                0x15: accumulator == constant,
                0x25: accumulator > constant,
                0x45: bool(accumulator & constant),
            }[code]
            position += if_true if holds else if_false


def verdict(architecture, name, *arguments, allow_exec=False, gpu=False):
    program = build_program(architecture, allow_exec=allow_exec, gpu=gpu)
    return interpret(program, numbers(architecture)[name], arguments, AUDIT[architecture])


both = pytest.mark.parametrize("architecture", ARCHITECTURES)
either_mode = pytest.mark.parametrize("allow_exec", [False, True], ids=["no exec", "exec"])


@both
@given(audit=st.integers(0, 2**32 - 1), number=st.integers(0, 2**32 - 1))
def test_a_call_by_another_architecture_kills(architecture, audit, number):
    program = build_program(architecture, allow_exec=True)
    if audit != AUDIT[architecture]:
        assert interpret(program, number, audit=audit) == bpf.KILL_PROCESS


@both
@given(number=st.integers(NEWEST_KNOWN + 1, 2**32 - 1), arguments=ARGUMENTS)
def test_unknown_calls_and_those_of_x32_do_not_exist(architecture, number, arguments):
    program = build_program(architecture, allow_exec=True)
    assert interpret(program, number, arguments, AUDIT[architecture]) == ENOSYS


@both
@either_mode
@given(number=st.integers(0, NEWEST_KNOWN), arguments=ARGUMENTS)
def test_calls_that_are_not_named_are_allowed(architecture, allow_exec, number, arguments):
    program = build_program(architecture, allow_exec=allow_exec)
    if number not in numbers(architecture).values():
        assert interpret(program, number, arguments, AUDIT[architecture]) == bpf.ALLOW


@both
@either_mode
@given(arguments=ARGUMENTS)
def test_named_calls_are_refused_whatever_their_arguments(architecture, allow_exec, arguments):
    allowed = BY_ARGUMENTS | HARMLESS | (NEEDED_TO_EXECUTE if allow_exec else set())
    for name in numbers(architecture).keys() - allowed - {"clone3", "sched_setaffinity"}:
        answer = verdict(architecture, name, *arguments, allow_exec=allow_exec)
        assert answer in (EPERM, EACCES), name


@both
@either_mode
def test_special_answers(architecture, allow_exec):
    mode = {"allow_exec": allow_exec}
    assert verdict(architecture, "clone3", **mode) == ENOSYS
    assert verdict(architecture, "sched_setaffinity", **mode) == SUCCEED_WITHOUT_EFFECT
    assert verdict(architecture, "execve", **mode) == (bpf.ALLOW if allow_exec else EPERM)
    assert verdict(architecture, "socket", **mode) == EACCES


@both
def test_clone_makes_threads_and_with_exec_processes_but_never_namespaces(architecture):
    def clone(flags, **mode):
        return verdict(architecture, "clone", flags, **mode)

    assert clone(CLONE_THREAD) == bpf.ALLOW
    assert clone(SIGCHLD) == EPERM
    assert clone(SIGCHLD, allow_exec=True) == bpf.ALLOW
    for mode in ({}, {"allow_exec": True}):
        assert clone(CLONE_NEWUSER | SIGCHLD, **mode) == EPERM
        assert clone(CLONE_NEWUSER | CLONE_THREAD, **mode) == EPERM


@both
@given(pid=WORDS, pointer=WORDS)
def test_limits_are_read_and_not_set(architecture, pid, pointer):
    for new in (pointer, pointer & 0xFFFFFFFF, pointer & ~0xFFFFFFFF):
        expected = bpf.ALLOW if new == 0 else EPERM
        assert verdict(architecture, "prlimit64", pid, 7, new) == expected


@both
def test_anonymous_memory_is_private_and_files_may_be_shared(architecture):
    def mmap(flags):
        return verdict(architecture, "mmap", 0, 4096, 3, flags)

    assert mmap(MAP_PRIVATE | MAP_ANONYMOUS) == bpf.ALLOW
    assert mmap(MAP_SHARED) == bpf.ALLOW
    assert mmap(MAP_SHARED | MAP_ANONYMOUS) == EPERM
    assert mmap(MAP_SHARED_VALIDATE | MAP_ANONYMOUS) == EPERM


@both
@given(family=st.integers(0, 50), kind=st.integers(0, 15), close=st.booleans())
def test_socket_pairs_are_local_and_connected(architecture, family, kind, close):
    expected = bpf.ALLOW if family == 1 and kind in (1, 5) else EACCES
    kind |= SOCK_CLOEXEC if close else 0
    assert verdict(architecture, "socketpair", family, kind) == expected


@both
@given(number=st.integers(0, NEWEST_KNOWN), arguments=ARGUMENTS)
def test_other_calls_are_answered_with_a_gpu_as_without(architecture, number, arguments):
    if number not in {numbers(architecture)[name] for name in DIFFERENT_WITH_GPU}:
        programs = [build_program(architecture, allow_exec=False, gpu=g) for g in (False, True)]
        answers = [interpret(p, number, arguments, AUDIT[architecture]) for p in programs]
        assert answers[0] == answers[1]


@both
@given(family=st.integers(0, 50), kind=st.integers(0, 15), close=st.booleans())
def test_with_a_gpu_sockets_are_local_and_send_nothing_unconnected(
    architecture, family, kind, close
):
    expected = bpf.ALLOW if family == 1 and kind in (1, 5) else EACCES
    kind |= SOCK_CLOEXEC if close else 0
    assert verdict(architecture, "socket", family, kind, gpu=True) == expected


@both
@pytest.mark.parametrize("name", ["connect", "accept", "accept4"])
def test_with_a_gpu_nobody_is_connected_to(architecture, name):
    assert verdict(architecture, name, gpu=True) == EACCES


@both
def test_with_a_gpu_anonymous_memory_may_be_shared(architecture):
    flags = MAP_SHARED | MAP_ANONYMOUS
    assert verdict(architecture, "mmap", 0, 4096, 3, flags, gpu=True) == bpf.ALLOW


@both
@given(option=st.integers(0, 100))
def test_process_settings_that_evade_monitor_or_judge_are_refused(architecture, option):
    refused = {1, 4, 22, 31, 32, 35, 62}
    assert verdict(architecture, "prctl", option) == (EPERM if option in refused else bpf.ALLOW)


@both
def test_a_terminal_cannot_be_typed_into(architecture):
    tiocsti, fionread = 0x5412, 0x541B
    assert verdict(architecture, "ioctl", 0, tiocsti) == EPERM
    assert verdict(architecture, "ioctl", 0, fionread) == bpf.ALLOW


def test_the_numbers_are_those_of_the_systems_headers():
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("this machine lacks: a C compiler")
    command = [compiler, "-E", "-dM", "-include", "asm/unistd.h", "-x", "c", "/dev/null"]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode != 0:
        pytest.skip("this machine lacks: the kernel's headers")
    names = dict(re.findall(r"#define __NR_(\w+) (\w+)", answer.stdout))
    known = {name: names.get(value.removeprefix("__NR_"), value) for name, value in names.items()}
    known = {name: names.get(v.removeprefix("__NR3264_"), v) for name, v in known.items()}
    compared = {name: int(known[name]) for name in NUMBERS if known.get(name, "").isdigit()}
    assert len(compared) > 60
    assert compared == {name: NUMBERS[name] for name in compared}
