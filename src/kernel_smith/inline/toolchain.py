"""Which compiler builds a dialect, with which arguments, and which flags a candidate may add.

A dialect is one row of `DIALECTS`. `find_toolchain` finds its compiler on this machine,
`check_flags` refuses flags that would load, read or write something else than the kernel, and
`command` puts the command line together.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.errors import BadInput, MissingPrerequisite


@dataclass(frozen=True)
class Dialect:
    """How one dialect is compiled. Of each group in `choices`, the first that works is used."""

    variable: str
    compilers: tuple[str, ...]
    install: str
    source_name: str
    arguments: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]
    link_arguments: tuple[str, ...]


DIALECTS = {
    "cpp": Dialect(
        variable="CXX",
        compilers=("g++", "clang++"),
        install="apt-get install g++",
        source_name="kernel.cpp",
        arguments=(
            "-std=c++17",
            "-O3",
            "-fopenmp",
            "-shared",
            "-fPIC",
            "-fdiagnostics-color=never",
        ),
        choices=(
            # clang on aarch64 knows only the second.
            ("-march=native", "-mcpu=native"),
            # The snippet's margin would show lines of the kernel, not of the candidate.
            ("-fno-diagnostics-show-line-numbers",),
        ),
        # Undefined symbols fail here, with the compiler's message, and not when the library loads.
        link_arguments=("-Wl,-z,defs", "-Wl,-z,noexecstack"),
    ),
}


@dataclass(frozen=True)
class Toolchain:
    """A compiler that was found: `command_prefix` is it and the arguments that every build gets."""

    dialect: str
    compiler: Path
    version: str
    command_prefix: tuple[str, ...]


_ALLOWED = re.compile(r"-(O\w*|[fmW][\w+=.,:-]+|std=[\w+:]+|D[A-Za-z_][^@/\x00-\x1f\x7f]*)")
# Options that begin like the allowed ones, but load code, name files, write beside the library,
# hand arguments to another program, or change how messages look.
_REFUSED = re.compile(
    r"-fplugin|-fpass-plugin|-fdump|-fprofile|-fauto-profile|-fcs-profile|-fcoverage|-ftest-coverage"
    r"|-fuse-ld|-f.*-map\b|-f.*-path\b|-f.*-file\b|-f.*-dir\b|-f.*list=|-fmodule|-fpch|-fopt-info.*="
    r"|-f(no-)?diagnostics|-f(no-)?message|-fmax-errors|-fsyntax-only|-fsave-|-fstack-usage"
    r"|-fcallgraph-info|-ftime-trace|-fthinlto-index|-fdeps|-fworking-directory|-fdirectives-only"
    r"|-fpreprocessed|-finput-charset|-fembed|-fxray|-frecord|-fwpa|-fresolution|-flinker|-fltrans"
    r"|-mllvm|-W.*,"
)
ALLOWED_FLAGS = "flags begin with -O, -f, -m, -D, -std= or -W, and name no file"


def find_toolchain(dialect: str = "cpp") -> Toolchain:
    """The compiler for a dialect: its environment variable's, or the first one on the path."""
    row = DIALECTS.get(dialect)
    if row is None:
        raise BadInput(f"unknown dialect '{dialect}'", hint=f"use one of: {', '.join(DIALECTS)}")
    chosen = shlex.split(os.environ.get(row.variable, ""))
    for words in [chosen] if chosen else [[name] for name in row.compilers]:
        path = shutil.which(words[0])
        if path is not None:
            return _inspect(dialect, (path, *words[1:]))
    if chosen:
        raise MissingPrerequisite(
            f"${row.variable} names a compiler that does not exist: {chosen[0]}",
            hint=f"unset {row.variable}, or install a compiler: {row.install}",
        )
    raise MissingPrerequisite(
        f"no {dialect} compiler: looked for ${row.variable} and on PATH for "
        f"{' and '.join(row.compilers)}",
        hint=f"install one: {row.install}",
    )


def check_flags(flags: Iterable[str]) -> tuple[str, ...]:
    """The flags, if a candidate may use all of them."""
    checked = tuple(flags)
    for flag in checked:
        if not _ALLOWED.fullmatch(flag) or _REFUSED.match(flag):
            raise BadInput(f"compiler flag not allowed: {flag}", hint=ALLOWED_FLAGS)
    return checked


def command(
    toolchain: Toolchain, source_path: Path, output_path: Path, flags: Sequence[str] = ()
) -> list[str]:
    """The command line that compiles one source into one shared library."""
    return [
        *toolchain.command_prefix,
        *check_flags(flags),
        *(str(source_path), "-o", str(output_path)),
        *DIALECTS[toolchain.dialect].link_arguments,
    ]


@functools.cache
def _inspect(dialect: str, words: tuple[str, ...]) -> Toolchain:
    """Ask a compiler for its version and for the arguments that it understands."""
    row = DIALECTS[dialect]
    answer = _ask([*words, "--version"])
    if answer.returncode != 0 or not answer.stdout.strip():
        raise MissingPrerequisite(
            f"{shlex.join(words)} --version fails: {answer.stderr.strip() or 'no answer'}",
            hint=f"install a working compiler: {row.install}",
        )
    chosen = [_first_understood(words, options) for options in row.choices]
    prefix = (*words, *row.arguments, *(option for option in chosen if option))
    return Toolchain(dialect, Path(words[0]), answer.stdout.splitlines()[0].strip(), prefix)


def _first_understood(words: tuple[str, ...], options: tuple[str, ...]) -> str | None:
    for option in options:
        if _ask([*words, option, "-E", "-x", "c++", os.devnull]).returncode == 0:
            return option
    return None


def _ask(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return subprocess.CompletedProcess(arguments, 1, "", str(problem))
