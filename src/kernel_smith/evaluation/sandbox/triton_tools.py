"""Triton inside a confined process, which may not start the programs that Triton starts.

Triton turns a kernel into PTX by itself, and then runs two programs: ptxas makes machine code of
it, and a C compiler builds the function that launches it. Here the judge is asked for both. It runs
them in a sandbox of their own and keeps what they make, by content, where no candidate can write.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import types
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from kernel_smith.inline.gpu import vendor_of_torch
from kernel_smith.inline.triton_key import know_triton_by_its_date

LAUNCHER, MACHINE_CODE = "triton-launcher", "ptx"
COMPILING, COMPILED = "compiling", "compiled"  # said, so that others may have the device meanwhile

Ask = Callable[[str, str, tuple[str, ...]], str]
"""Dialect, source and flags of something to compile; answered with the path of the product."""
Tell = Callable[[str], None]
"""Have the judge know that Triton compiles, or has compiled."""


def is_usable() -> bool:
    """Is there a Triton for the GPUs of this process's torch that asks for its compilers here?
    Those of MetaX and AMD start other programs, which nobody here has seen."""
    return vendor_of_torch() == "cuda" and find_spec("triton") is not None


def warm_up() -> None:
    """Do once, in the process that others are forked from, what Triton does at its first use.

    Compiles a kernel, which needs no device: a context here would make forked processes useless.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia import driver
    from triton.compiler import ASTSource

    from kernel_smith.evaluation.sandbox.triton_example import copy_kernel

    know_triton_by_its_date()
    driver.library_dirs()
    types_of = {"source": "*fp32", "target": "*fp32", "count": "i32", "BLOCK": "constexpr"}
    source = ASTSource(copy_kernel, types_of, {(3,): 128})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))
    _remember_assemblers()


def _remember_assemblers() -> None:
    """Have forked processes know each assembler, and what it says of its version.

    Which one it is follows from the environment, of which they keep little; and one that was not
    asked here would be started there. Those for other devices may be missing.
    """
    from triton import knobs
    from triton.backends.nvidia import compiler

    said = {}
    for name in ("ptxas", "ptxas_blackwell"):
        try:
            path = getattr(knobs.nvidia, name).path
        except (AttributeError, RuntimeError):  # an older Triton; or no such program
            continue
        setattr(knobs.nvidia, name, path)
        said[path] = subprocess.check_output([path, "--version"])
    compiler.subprocess = types.SimpleNamespace(
        run=subprocess.run,
        check_output=lambda command: said[command[0]],
        CalledProcessError=subprocess.CalledProcessError,
    )


def ask_for_compilers(ask: Ask, tell: Tell) -> None:
    """Have this process's Triton ask for what it would otherwise start programs for."""
    from triton import knobs
    from triton.backends.nvidia import compiler

    def build(name: str, source: str, folder: str, *places: list[str]) -> str:
        return ask(LAUNCHER, Path(source).read_text(), ())

    def run(command: list[str], *, stderr: IO[str], **options: Any) -> None:
        assemble(ask, command, stderr)

    def begin(**compilation: Any) -> None:
        tell(COMPILING)

    def end(**compilation: Any) -> None:
        tell(COMPILED)

    knobs.build.impl = build
    knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook = begin, end
    compiler.subprocess = types.SimpleNamespace(
        run=run,
        check_output=compiler.subprocess.check_output,
        CalledProcessError=subprocess.CalledProcessError,
    )


def assemble(ask: Ask, command: list[str], log: IO[str]) -> None:
    """Do what the ptxas command would do: `ptxas FLAGS... SOURCE -o PRODUCT`."""
    *flags, source, _, product = command[1:]
    try:
        made = ask(MACHINE_CODE, Path(source).read_text(), tuple(flags))
    except Exception as error:
        # The log is open for reading in this process; the program would have written to it.
        Path(log.name).write_text(getattr(error, "log", str(error)))
        raise subprocess.CalledProcessError(1, command) from None
    shutil.copyfile(made, product)
    os.chmod(product, 0o600)


class LaunchSwitch:
    """Turns the launches of this process's kernels off, so that they do nothing, and on again.

    It is built in before the program is loaded: whether it is off, no launch tells.
    """

    def __init__(self, *, off: bool) -> None:
        from triton.compiler import CompiledKernel
        from triton.runtime.jit import JITFunction

        self.off = off
        launch, launcher_of = JITFunction.run, CompiledKernel.__getitem__

        def run(kernel: Any, *arguments: Any, **options: Any) -> Any:
            return None if self.off else launch(kernel, *arguments, **options)

        def launcher(kernel: Any, grid: Any) -> Any:
            return self._do_nothing if self.off else launcher_of(kernel, grid)

        JITFunction.run, CompiledKernel.__getitem__ = run, launcher

    def _do_nothing(self, *arguments: Any, **options: Any) -> None: ...
