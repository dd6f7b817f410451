"""Programs that Triton needs, run in the sandbox for processes that may start none."""

from __future__ import annotations

import os
import stat
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("triton")

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.judge.compiling import triton as compiler_module
from kernel_smith.evaluation.judge.compiling.triton import TritonCompiler
from kernel_smith.evaluation.judge.platform.device_lock import DeviceLock
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.sandbox.triton_tools import COMPILED, COMPILING, LAUNCHER, MACHINE_CODE
from kernel_smith.records import Limits, Reason

FLAGS = ("-lineinfo", "-v", "--regAllocOptLevel=2", "--gpu-name=sm_90a")
PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry store(.param .u64 target)
{
    .reg .b64 %address;
    .reg .b32 %value;
    ld.param.u64 %address, [target];
    mov.b32 %value, NUMBER;
    st.global.b32 [%address], %value;
    ret;
}
"""
HEADERS = """
#include <Python.h>
#include "cuda.h"
CUdeviceptr answer(void) { return (CUdeviceptr)PY_MAJOR_VERSION; }
"""


class Witness:
    """Takes the part of `DeviceLock`, and notes how often it was stepped out."""

    def __init__(self) -> None:
        self.steps = 0
        self.outside = False

    def step_out(self) -> None:
        self.outside = True

    def come_back(self) -> None:
        self.outside = False

    @contextmanager
    def stepping_out(self) -> Iterator[None]:
        self.steps += 1
        yield


@pytest.fixture
def turns() -> Witness:
    return Witness()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def triton_compiler(
    processes: ProcessPool, turns: Witness, cache: Path
) -> Iterator[TritonCompiler]:
    triton_compiler = TritonCompiler(
        processes, CoreSet.choose(None), Limits(), cast(DeviceLock, turns)
    )
    yield triton_compiler
    triton_compiler.close()
    assert not triton_compiler.armed.exists()


def need(source: str = PTX, number: int = 7, **changes: Any) -> dict[str, Any]:
    source = source.replace("NUMBER", str(number))
    return {"dialect": MACHINE_CODE, "source": source, "flags": list(FLAGS)} | changes


def served(answer: dict[str, Any]) -> Path:
    assert list(answer) == ["path"], answer
    return Path(answer["path"])


# ---------------------------------------------------------------- machine code


def test_machine_code_is_served_where_the_process_can_read_and_not_write(
    triton_compiler: TritonCompiler,
) -> None:
    assert not triton_compiler.has_kernels
    path = served(triton_compiler.provide(need()))
    assert path.parent == triton_compiler.armed
    assert path.suffix == ".cubin"
    assert path.read_bytes().startswith(b"\x7fELF")
    assert stat.S_IMODE(path.stat().st_mode) == 0o555
    assert triton_compiler.has_kernels
    assert triton_compiler.compiling_seconds > 0
    assert triton_compiler.rejection is None


def test_the_same_is_compiled_once_and_served_by_the_same_name(
    triton_compiler: TritonCompiler,
) -> None:
    first = served(triton_compiler.provide(need()))
    spent = triton_compiler.compiling_seconds
    assert served(triton_compiler.provide(need())) == first
    other = served(triton_compiler.provide_disarmed(need()))
    assert other == triton_compiler.disarmed / first.name
    assert other.read_bytes() == first.read_bytes()
    assert triton_compiler.compiling_seconds == spent


def test_the_registers_of_a_kernel_are_known_also_where_it_was_compiled_before(
    triton_compiler: TritonCompiler, processes: ProcessPool, turns: Witness
) -> None:
    triton_compiler.provide(need())
    triton_compiler.provide(need())
    another = TritonCompiler(processes, CoreSet.choose(None), Limits(), cast(DeviceLock, turns))
    another.provide(need())
    for (kernel,) in (triton_compiler.resources, another.resources):
        assert kernel.name == "store" and kernel.registers and kernel.spill_bytes == 0
    assert another.compiling_seconds == 0
    another.close()


def test_another_source_or_other_flags_are_another_product(triton_compiler: TritonCompiler) -> None:
    flags = [*FLAGS, "--opt-level", "0"]
    needs = [need(), need(number=8), need(flags=flags)]
    paths = [served(triton_compiler.provide(wanted)) for wanted in needs]
    assert len({path.name for path in paths}) == 3
    assert len({path.read_bytes() for path in paths}) == 3


def test_another_candidate_gets_its_copy_from_the_cache(
    triton_compiler: TritonCompiler, processes: ProcessPool, turns: Witness
) -> None:
    first = served(triton_compiler.provide(need()))
    other = TritonCompiler(processes, CoreSet.choose(None), Limits(), cast(DeviceLock, turns))
    path = served(other.provide(need()))
    assert path != first
    assert path.read_bytes() == first.read_bytes()
    assert other.compiling_seconds == 0
    other.close()
    assert first.exists()


def test_a_spoilt_entry_of_the_cache_is_compiled_again(
    triton_compiler: TritonCompiler, processes: ProcessPool, turns: Witness, cache: Path
) -> None:
    right = served(triton_compiler.provide(need())).read_bytes()
    (kept,) = cache.rglob("kernel.so")
    kept.chmod(0o644)
    kept.write_bytes(b"spoilt")
    other = TritonCompiler(processes, CoreSet.choose(None), Limits(), cast(DeviceLock, turns))
    assert served(other.provide(need())).read_bytes() == right
    assert other.compiling_seconds > 0
    other.close()


def test_the_device_is_left_to_others_while_compiling(
    triton_compiler: TritonCompiler, turns: Witness
) -> None:
    triton_compiler.provide(need())
    assert turns.steps == 1


# ---------------------------------------------------------------- what is refused


def test_broken_ptx_is_answered_with_the_log_and_remembered_until_something_works(
    triton_compiler: TritonCompiler,
) -> None:
    answer = triton_compiler.provide(need(PTX.replace("mov.b32", "move.b32")))
    assert list(answer) == ["log"]
    assert "kernel.ptx" in answer["log"]
    assert triton_compiler.rejection is not None
    assert triton_compiler.rejection.reason is Reason.COMPILER_REJECTED
    assert (
        "error" in triton_compiler.rejection.message.lower()
        or "fatal" in triton_compiler.rejection.message
    )
    assert not triton_compiler.has_kernels
    assert list(triton_compiler.armed.iterdir()) == []
    served(triton_compiler.provide(need()))
    assert triton_compiler.rejection is None


def test_a_compiler_that_takes_too_long_is_stopped(
    processes: ProcessPool, turns: Witness, cache: Path
) -> None:
    hurried = TritonCompiler(
        processes, CoreSet.choose(None), Limits(compile_seconds=1e-3), cast(DeviceLock, turns)
    )
    assert "stopped after" in str(hurried.provide(need()))
    assert hurried.rejection is not None
    assert hurried.rejection.reason is Reason.COMPILER_TIMEOUT
    hurried.close()


@pytest.mark.parametrize(
    "flag",
    [
        "",
        "-o",
        "-v -o",
        "-lineinfo ",
        "/etc/passwd",
        "@/etc/passwd",
        "--options-file=/etc/passwd",
        "--maxrregcount=",
        "--gpu-name=sm_90a\n-o",
        "--gpu-name=sm_90/../x",
        "\ud800",
    ],
    ids=repr,
)
def test_flags_beyond_those_of_triton_are_refused(
    triton_compiler: TritonCompiler, flag: str
) -> None:
    answer = triton_compiler.provide(need(flags=[*FLAGS, flag]))
    assert "ptxas is not given" in answer["log"]
    assert triton_compiler.rejection is None
    assert triton_compiler.compiling_seconds == 0


@pytest.mark.parametrize(
    "request_",
    [
        None,
        7,
        "text",
        [],
        {},
        {"dialect": MACHINE_CODE},
        {"dialect": MACHINE_CODE, "source": PTX},
        need(flags=None),
        need(flags=3),
        need(dialect="cpp"),
        need(dialect=None),
        need("\ud800"),
        need("\ud800", dialect=LAUNCHER, flags=[]),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_malformed_request_is_answered(triton_compiler: TritonCompiler, request_: Any) -> None:
    answer = triton_compiler.provide(request_)
    assert answer["log"].startswith("malformed request")
    assert list(triton_compiler.armed.iterdir()) == []


# ---------------------------------------------------------------- launchers


@pytest.fixture
def link_with(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *options: monkeypatch.setattr(compiler_module, "_linked", lambda: options)


def test_a_launcher_finds_the_headers_of_python_and_of_the_driver(
    triton_compiler: TritonCompiler, link_with: Any
) -> None:
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        pytest.skip("this machine lacks: the headers of Python")
    link_with()
    path = served(triton_compiler.provide(need(HEADERS, dialect=LAUNCHER, flags=[])))
    assert path.suffix == ".so"
    assert os.access(path, os.X_OK)
    assert path.read_bytes().startswith(b"\x7fELF")
    assert not triton_compiler.has_kernels


def test_a_launcher_that_does_not_compile_is_answered(
    triton_compiler: TritonCompiler, link_with: Any
) -> None:
    link_with()
    answer = triton_compiler.provide(need("int launch(", dialect=LAUNCHER, flags=[]))
    assert "launcher.c" in answer["log"]
    assert triton_compiler.rejection is not None
    assert triton_compiler.rejection.reason is Reason.COMPILER_REJECTED


def test_a_launcher_that_cannot_be_linked_is_answered(
    triton_compiler: TritonCompiler, link_with: Any
) -> None:
    link_with("-l:no-such-library.so.1")
    answer = triton_compiler.provide(need("int launch;", dialect=LAUNCHER, flags=[]))
    assert "no-such-library" in answer["log"]


def test_a_machine_without_a_driver_is_told_what_it_lacks(
    triton_compiler: TritonCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.backends.nvidia import driver

    def library_dirs() -> list[str]:
        raise AssertionError("libcuda.so cannot found!")

    monkeypatch.setattr(driver, "library_dirs", library_dirs)
    compiler_module._linked.cache_clear()
    with pytest.raises(MissingPrerequisite, match="libcuda") as caught:
        triton_compiler.provide(need("int launch;", dialect=LAUNCHER, flags=[]))
    assert "TRITON_LIBCUDA_PATH" in caught.value.hint


def test_others_may_have_the_device_while_a_process_compiles(
    triton_compiler: TritonCompiler, turns: Witness
) -> None:
    assert triton_compiler.provide(COMPILING) == {}
    assert turns.outside
    assert triton_compiler.provide(COMPILED) == {}
    assert not turns.outside
