"""Triton in a process that may not start programs: it asks for them, and takes what it is given."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.evaluation.sandbox.triton_tools import LAUNCHER, MACHINE_CODE, assemble

# In a process of its own, because what it does to Triton lasts; in a cache of its own, because what
# is found there is not asked for.
ASKING = """
import json, subprocess, sys, tempfile
from triton import knobs
knobs.cache.dir = folder = sys.argv[1]
asked, answer, told = [], {}, []

class Refused(Exception):
    log = "ptxas fatal : not today"

def refuse(*asked):
    raise Refused

def compile_for_real(dialect, source, flags):
    asked.append([dialect, source, flags])
    made = tempfile.mkdtemp(dir=folder)
    with open(made + "/kernel.ptx", "w") as file:
        file.write(source)
    command = [knobs.nvidia.ptxas.path, *flags, "kernel.ptx", "-o", "product"]
    subprocess.run(command, cwd=made, check=True, capture_output=True)
    return made + "/product"

def compile_example():
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from kernel_smith.evaluation.sandbox.triton_example import copy_kernel
    types = {"source": "*fp32", "target": "*fp32", "count": "i32", "BLOCK": "constexpr"}
    return triton.compile(ASTSource(copy_kernel, types, {(3,): 128}), GPUTarget("cuda", 90, 32))

from kernel_smith.evaluation.sandbox.triton_tools import ask_for_compilers
"""


def in_triton(program: str, folder: Path) -> dict[str, Any]:
    """The `answer` that a program leaves, which begins by asking."""
    pytest.importorskip("triton")
    whole = f"{ASKING}\n{program}\nprint(json.dumps(answer | {{'asked': asked}}))"
    command = [sys.executable, "-c", whole, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_machine_code_comes_from_whoever_is_asked(tmp_path: Path) -> None:
    program = """
ask_for_compilers(compile_for_real, told.append)
answer["cubin"] = compile_example().asm["cubin"][:4].hex()
"""
    answer = in_triton(program, tmp_path)
    ((dialect, source, flags),) = answer["asked"]
    assert dialect == MACHINE_CODE
    assert ".target sm_90" in source
    assert "--gpu-name=sm_90a" in flags
    assert bytes.fromhex(answer["cubin"]) == b"\x7fELF"


@pytest.mark.parametrize("device", [90, 100, 120])
def test_a_forked_process_starts_no_assembler_to_learn_its_version(
    device: int, tmp_path: Path
) -> None:
    program = f"""
import os, pathlib
from kernel_smith.evaluation.sandbox.triton_tools import warm_up
chosen = pathlib.Path(folder) / "ptxas"
chosen.symlink_to(knobs.nvidia.ptxas.path)
os.environ["TRITON_PTXAS_PATH"] = str(chosen)  # as PyTorch's compiler does, in whoever used it
os.environ["TRITON_LIBCUDA_PATH"] = folder  # there may be no driver here
warm_up()
del os.environ["TRITON_PTXAS_PATH"]  # as for each process that is forked

def start_nothing(*arguments, **options):
    raise PermissionError(arguments)

def give(dialect, source, flags):
    asked.append(source)
    return str(chosen)  # any file does

subprocess.Popen = start_nothing
ask_for_compilers(give, told.append)
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernel_smith.evaluation.sandbox.triton_example import copy_kernel
types = {{"source": "*fp32", "target": "*fp32", "count": "i32", "BLOCK": "constexpr"}}
triton.compile(ASTSource(copy_kernel, types, {{(3,): 64}}), GPUTarget("cuda", {device}, 32))
answer["uses"] = knobs.nvidia.ptxas.path == str(chosen)
"""
    answer = in_triton(program, tmp_path)
    (source,) = answer["asked"]
    assert f".target sm_{device}" in source
    assert answer["uses"]


def test_a_refusal_is_what_triton_raises_where_ptxas_fails(tmp_path: Path) -> None:
    program = """
from triton.backends.nvidia.compiler import PTXASError
ask_for_compilers(refuse, told.append)
try:
    compile_example()
except PTXASError as error:
    answer["error"] = str(error)
"""
    error = in_triton(program, tmp_path)["error"]
    assert "ptxas fatal : not today" in error
    assert "failed with error code 1" in error


def test_a_launcher_is_asked_for_with_its_source(tmp_path: Path) -> None:
    program = """
from triton.runtime.build import _build
ask_for_compilers(lambda *what: asked.append(what) or "/a/launcher.so", told.append)
source = folder + "/launcher.c"
with open(source, "w") as file:
    file.write("int launch;")
answer["path"] = _build("launcher", source, folder, [], [], [], [])
"""
    answer = in_triton(program, tmp_path)
    assert answer == {"path": "/a/launcher.so", "asked": [[LAUNCHER, "int launch;", []]]}


# ---------------------------------------------------------------- one command of ptxas


def command_in(folder: Path) -> list[str]:
    (folder / "in.ptx").write_text("some PTX")
    flags = ["-lineinfo", "--gpu-name=sm_90a"]
    return ["/bin/ptxas", *flags, str(folder / "in.ptx"), "-o", str(folder / "out.cubin")]


def test_a_product_lies_where_the_command_says_and_can_be_replaced(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.write_bytes(b"machine code")
    made.chmod(0o444)
    asked: list[tuple[str, str, tuple[str, ...]]] = []

    def ask(*what: Any) -> str:
        asked.append(what)
        return str(made)

    with (tmp_path / "log").open("w+") as log:
        assemble(ask, command_in(tmp_path), log)
    product = tmp_path / "out.cubin"
    assert asked == [(MACHINE_CODE, "some PTX", ("-lineinfo", "--gpu-name=sm_90a"))]
    assert product.read_bytes() == b"machine code"
    assert stat.S_IMODE(product.stat().st_mode) == 0o600


def test_an_error_without_a_log_is_logged_by_its_own_words(tmp_path: Path) -> None:
    def ask(*what: Any) -> str:
        raise RuntimeError("the judge is away")

    (tmp_path / "log").touch()
    command = command_in(tmp_path)
    with (
        (tmp_path / "log").open() as log,
        pytest.raises(subprocess.CalledProcessError) as caught,
    ):
        assemble(ask, command, log)
    assert caught.value.cmd == command
    assert (tmp_path / "log").read_text() == "the judge is away"
    assert not (tmp_path / "out.cubin").exists()


SWITCHING = """
import json
from triton.compiler import CompiledKernel
from triton.runtime.jit import JITFunction
launched = []
JITFunction.run = lambda kernel, *arguments, **options: launched.append(arguments)
CompiledKernel.__getitem__ = lambda kernel, grid: lambda *arguments: launched.append(arguments)
from kernel_smith.evaluation.sandbox.triton_example import copy_kernel
from kernel_smith.evaluation.sandbox.triton_tools import LaunchSwitch
switch = LaunchSwitch(off=False)
known = JITFunction.run, CompiledKernel.__getitem__
compiled = object.__new__(CompiledKernel)
for switch.off in (False, True, False):
    copy_kernel[(1,)](len(launched))
    compiled[(1, 1, 1)](len(launched))
    assert known == (JITFunction.run, CompiledKernel.__getitem__)
print(json.dumps(launched))
"""


def test_launches_are_switched_off_and_on_again_and_look_the_same() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SWITCHING], capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == [[0], [1], [2], [3]]
