"""Programs that Triton needs, run in the sandbox for processes that may start none."""

from __future__ import annotations

import os
import shutil
import stat
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("triton")

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.judge.device import foundry as foundry_module
from kernel_smith.evaluation.judge.device.foundry import Foundry
from kernel_smith.evaluation.judge.device.turns import Turns
from kernel_smith.evaluation.judge.nursery import Nursery, Place
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
    """Takes the part of `Turns`, and notes how often it was stepped out."""

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


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    folder = Path(tempfile.mkdtemp(prefix="kernel-smith-test-"))
    nursery = Nursery(folder)
    yield nursery
    nursery.close()
    shutil.rmtree(folder)


@pytest.fixture
def turns() -> Witness:
    return Witness()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def foundry(nursery: Nursery, turns: Witness, cache: Path) -> Iterator[Foundry]:
    foundry = Foundry(nursery, Place.choose(None), Limits(), cast(Turns, turns))
    yield foundry
    foundry.close()
    assert not foundry.armed.exists()


def need(source: str = PTX, number: int = 7, **changes: Any) -> dict[str, Any]:
    source = source.replace("NUMBER", str(number))
    return {"dialect": MACHINE_CODE, "source": source, "flags": list(FLAGS)} | changes


def served(answer: dict[str, Any]) -> Path:
    assert list(answer) == ["path"], answer
    return Path(answer["path"])


# ---------------------------------------------------------------- machine code


def test_machine_code_is_served_where_the_process_can_read_and_not_write(foundry: Foundry) -> None:
    assert not foundry.has_kernels
    path = served(foundry.provide(need()))
    assert path.parent == foundry.armed
    assert path.suffix == ".cubin"
    assert path.read_bytes().startswith(b"\x7fELF")
    assert stat.S_IMODE(path.stat().st_mode) == 0o555
    assert foundry.has_kernels
    assert foundry.compiling_seconds > 0
    assert foundry.rejection is None


def test_the_same_is_compiled_once_and_served_by_the_same_name(foundry: Foundry) -> None:
    first = served(foundry.provide(need()))
    spent = foundry.compiling_seconds
    assert served(foundry.provide(need())) == first
    other = served(foundry.provide_disarmed(need()))
    assert other == foundry.disarmed / first.name
    assert other.read_bytes() == first.read_bytes()
    assert foundry.compiling_seconds == spent


def test_another_source_or_other_flags_are_another_product(foundry: Foundry) -> None:
    flags = [*FLAGS, "--opt-level", "0"]
    needs = [need(), need(number=8), need(flags=flags)]
    paths = [served(foundry.provide(wanted)) for wanted in needs]
    assert len({path.name for path in paths}) == 3
    assert len({path.read_bytes() for path in paths}) == 3


def test_another_candidate_gets_its_copy_from_the_cache(
    foundry: Foundry, nursery: Nursery, turns: Witness
) -> None:
    first = served(foundry.provide(need()))
    other = Foundry(nursery, Place.choose(None), Limits(), cast(Turns, turns))
    path = served(other.provide(need()))
    assert path != first
    assert path.read_bytes() == first.read_bytes()
    assert other.compiling_seconds == 0
    other.close()
    assert first.exists()


def test_a_spoilt_entry_of_the_cache_is_compiled_again(
    foundry: Foundry, nursery: Nursery, turns: Witness, cache: Path
) -> None:
    right = served(foundry.provide(need())).read_bytes()
    (kept,) = cache.rglob("kernel.so")
    kept.chmod(0o644)
    kept.write_bytes(b"spoilt")
    other = Foundry(nursery, Place.choose(None), Limits(), cast(Turns, turns))
    assert served(other.provide(need())).read_bytes() == right
    assert other.compiling_seconds > 0
    other.close()


def test_the_device_is_left_to_others_while_compiling(foundry: Foundry, turns: Witness) -> None:
    foundry.provide(need())
    assert turns.steps == 1


# ---------------------------------------------------------------- what is refused


def test_broken_ptx_is_answered_with_the_log_and_remembered_until_something_works(
    foundry: Foundry,
) -> None:
    answer = foundry.provide(need(PTX.replace("mov.b32", "move.b32")))
    assert list(answer) == ["log"]
    assert "kernel.ptx" in answer["log"]
    assert foundry.rejection is not None
    assert foundry.rejection.reason is Reason.COMPILER_REJECTED
    assert "error" in foundry.rejection.message.lower() or "fatal" in foundry.rejection.message
    assert not foundry.has_kernels
    assert list(foundry.armed.iterdir()) == []
    served(foundry.provide(need()))
    assert foundry.rejection is None


def test_a_compiler_that_takes_too_long_is_stopped(
    nursery: Nursery, turns: Witness, cache: Path
) -> None:
    hurried = Foundry(nursery, Place.choose(None), Limits(compile_seconds=1e-3), cast(Turns, turns))
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
def test_flags_beyond_those_of_triton_are_refused(foundry: Foundry, flag: str) -> None:
    answer = foundry.provide(need(flags=[*FLAGS, flag]))
    assert "ptxas is not given" in answer["log"]
    assert foundry.rejection is None
    assert foundry.compiling_seconds == 0


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
def test_a_malformed_request_is_answered(foundry: Foundry, request_: Any) -> None:
    answer = foundry.provide(request_)
    assert answer["log"].startswith("malformed request")
    assert list(foundry.armed.iterdir()) == []


# ---------------------------------------------------------------- launchers


@pytest.fixture
def link_with(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *options: monkeypatch.setattr(foundry_module, "_linked", lambda: options)


def test_a_launcher_finds_the_headers_of_python_and_of_the_driver(
    foundry: Foundry, link_with: Any
) -> None:
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        pytest.skip("this machine lacks: the headers of Python")
    link_with()
    path = served(foundry.provide(need(HEADERS, dialect=LAUNCHER, flags=[])))
    assert path.suffix == ".so"
    assert os.access(path, os.X_OK)
    assert path.read_bytes().startswith(b"\x7fELF")
    assert not foundry.has_kernels


def test_a_launcher_that_does_not_compile_is_answered(foundry: Foundry, link_with: Any) -> None:
    link_with()
    answer = foundry.provide(need("int launch(", dialect=LAUNCHER, flags=[]))
    assert "launcher.c" in answer["log"]
    assert foundry.rejection is not None
    assert foundry.rejection.reason is Reason.COMPILER_REJECTED


def test_a_launcher_that_cannot_be_linked_is_answered(foundry: Foundry, link_with: Any) -> None:
    link_with("-l:no-such-library.so.1")
    answer = foundry.provide(need("int launch;", dialect=LAUNCHER, flags=[]))
    assert "no-such-library" in answer["log"]


def test_a_machine_without_a_driver_is_told_what_it_lacks(
    foundry: Foundry, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.backends.nvidia import driver

    def library_dirs() -> list[str]:
        raise AssertionError("libcuda.so cannot found!")

    monkeypatch.setattr(driver, "library_dirs", library_dirs)
    foundry_module._linked.cache_clear()
    with pytest.raises(MissingPrerequisite, match="libcuda") as caught:
        foundry.provide(need("int launch;", dialect=LAUNCHER, flags=[]))
    assert "TRITON_LIBCUDA_PATH" in caught.value.hint


def test_others_may_have_the_device_while_a_process_compiles(
    foundry: Foundry, turns: Witness
) -> None:
    assert foundry.provide(COMPILING) == {}
    assert turns.outside
    assert foundry.provide(COMPILED) == {}
    assert not turns.outside
