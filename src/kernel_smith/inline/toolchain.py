"""Which compiler builds a dialect by a route, and the command line that it gets.

`find_toolchain` finds the compiler on this machine, and `command` puts its command line together.
What a compiler is looked for under and is given is a row of `dialects.py`; which flags a candidate
may add is in `flags.py`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.inline.dialects import DIALECTS, ROUTES, SOURCE_NAME, Recipe, recipe
from kernel_smith.inline.flags import ALLOWED_FLAGS, check_flags, flags_for
from kernel_smith.inline.gpu import visible_architecture

__all__ = [
    "ALLOWED_FLAGS",
    "DIALECTS",
    "ROUTES",
    "SOURCE_NAME",
    "Toolchain",
    "check_flags",
    "command",
    "find_toolchain",
]

_ARCHITECTURE = re.compile(r"(sm_|xcore|gfx)\w+")
_VERSION = re.compile(r"\b(release|version)\b.*\d")


@dataclass(frozen=True)
class Toolchain:
    """A compiler that was found: `command_prefix` is it and the arguments that every build gets.

    `headers` is a digest of headers that it reads beside its own, and empty where it reads none.
    """

    dialect: str
    compiler: Path
    version: str
    command_prefix: tuple[str, ...]
    route: str = "native"
    arch: str = ""
    headers: str = ""


def find_toolchain(
    dialect: str = "cpp", route: str = "native", arch: str | None = None
) -> Toolchain:
    """Return the compiler for a dialect: its environment variable's, or the first one that is
    installed.

    `arch` is the GPU architecture to build for; by default that of the GPU in this machine, if it
    is one of NVIDIA's and its compiler is used, and a usual one otherwise.
    """
    row = recipe(dialect, route)
    chosen = shlex.split(os.environ.get(row.variable, ""))
    words = next(_candidates(row, chosen), None)
    if words is not None:
        return _inspect(dialect, route, _architecture(row, arch), words)
    if chosen:
        raise MissingPrerequisite(
            f"${row.variable} names a compiler that does not exist: {chosen[0]}",
            hint=f"unset {row.variable}, or {_remedy(row)}",
        )
    places = [place for place in row.places if place != "PATH"]
    beside = f" and in {', '.join(places)}" if places else ""
    by_route = "" if route == "native" else f" for the route '{route}'"
    raise MissingPrerequisite(
        f"no {dialect} compiler{by_route}: looked for ${row.variable} and on PATH{beside} for "
        f"{' and '.join(row.compilers)}",
        hint=f"{_remedy(row)}",
    )


def command(
    toolchain: Toolchain, source_path: Path, output_path: Path, flags: Sequence[str] = ()
) -> list[str]:
    """Return the command line that compiles one source into one shared library."""
    return [
        *toolchain.command_prefix,
        *flags_for(toolchain.route, check_flags(flags, toolchain.dialect)),
        *(str(source_path), "-o", str(output_path)),
        *recipe(toolchain.dialect, toolchain.route).link_arguments,
    ]


def _candidates(row: Recipe, chosen: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield the compilers that exist, each with the words that stand before its arguments."""
    for words in [chosen] if chosen else [[name] for name in row.compilers]:
        for place in ["PATH"] if chosen else row.places:
            folder = None if place == "PATH" else os.path.expandvars(place)
            path = shutil.which(words[0], path=folder)
            if path is not None:
                yield (path, *words[1:])


def _remedy(row: Recipe) -> str:
    return row.install if row.architecture else f"install a compiler: {row.install}"


def _architecture(row: Recipe, arch: str | None) -> str:
    if not row.architecture:
        return ""
    if arch is None:
        found = visible_architecture() if row.variable == "NVCC" else None
        return found or row.architecture
    prefix = re.match("[a-z]+_?", row.architecture)
    assert prefix is not None
    if not _ARCHITECTURE.fullmatch(arch) or not arch.startswith(prefix.group()):
        raise BadInput(
            f"no architecture of {row.compilers[0]}: {arch!r}",
            hint=f"write it like {row.architecture}",
        )
    return arch


@functools.cache
def _inspect(dialect: str, route: str, arch: str, words: tuple[str, ...]) -> Toolchain:
    """Ask a compiler for its version and for the arguments that it understands."""
    row = recipe(dialect, route)
    compiler, names = Path(words[0]), {Path(word).name for word in words}
    if row.environment:
        words = ("/usr/bin/env", *row.environment, *words)
    version = _version(row, words)
    choices = [_first_understood(words, options) for options in row.choices]
    special = [row.compiler_arguments[name] for name in row.compiler_arguments if name in names]
    arguments = special[0] if special else row.arguments
    home = row.home_folder()
    filled = [argument.format(arch=arch, home=home) for argument in arguments]
    prefix = (*words, *filled, *(option for option in choices if option))
    return Toolchain(dialect, compiler, version, prefix, route, arch, _digest(row.headers))


def _version(row: Recipe, words: tuple[str, ...]) -> str:
    """Return the lines of its answer that name a version; a C++ compiler's first line, whatever
    it is."""
    answer = _ask([*words, "--version"])
    if answer.returncode != 0 or not answer.stdout.strip():
        raise MissingPrerequisite(
            f"{shlex.join(words)} --version fails: {answer.stderr.strip() or 'no answer'}",
            hint=f"install a working compiler: {row.install}",
        )
    lines = [line.strip() for line in answer.stdout.splitlines() if line.strip()]
    if not row.architecture:
        return lines[0]
    named = [line for line in lines if _VERSION.search(line)]
    if not named:
        raise MissingPrerequisite(
            f"{shlex.join(words)} --version names no version: {lines[0][:200]}",
            hint=f"install a working compiler: {row.install}",
        )
    return "; ".join(named[:3])


def _first_understood(words: tuple[str, ...], options: tuple[str, ...]) -> str | None:
    for option in options:
        if _ask([*words, option, "-E", "-x", "c++", os.devnull]).returncode == 0:
            return option
    return None


@functools.cache
def _digest(folders: tuple[Path, ...]) -> str:
    """Return one digest over some files, and over all files of some folders."""
    if not folders:
        return ""
    digest = hashlib.sha256()
    for folder in folders:
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path.relative_to(folder)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


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
