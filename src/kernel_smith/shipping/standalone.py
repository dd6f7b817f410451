"""`kernel_smith.inline` for a folder that runs alone: `cpp` and its kin, without the package.

`folder.py` copies this file, and the modules that it imports, into what it saves. The compiler's
arguments are those that the kernel was verified with; they lie beside it in `compilers.json`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from kernel_smith.inline.library import Device, Library
from kernel_smith.inline.processor import processor
from kernel_smith.inline.signature import prototypes

COMPILERS = "compilers.json"


def _dialect(name: str) -> Callable[..., Library]:
    def compile_text(source: str, flags: Sequence[str] = ()) -> Library:
        """Compile kernel text; each `extern "C"` function of it is an attribute of the result."""
        device: Device = "cpu" if name == "cpp" else "cuda"
        return Library(_built(name, source, tuple(flags)), prototypes(source), device)

    compile_text.__name__ = name
    return compile_text


cpp, cuda, maca, hip = map(_dialect, ("cpp", "cuda", "maca", "hip"))


def _built(dialect: str, source: str, flags: tuple[str, ...]) -> Path:
    """Return the compiled library, kept by all that decides what is in it."""
    row = json.loads((Path(__file__).parent / COMPILERS).read_text("utf-8"))[dialect]
    command = [*_compiler(row), *flags]
    key = hashlib.sha256("\0".join([*command, processor(), source]).encode()).hexdigest()
    kept = _cache_folder() / f"{key[:32]}.so"
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory(dir=kept.parent) as name:
        folder = Path(name)
        (folder / "kernel.cpp").write_text(source, "utf-8")
        ran = subprocess.run(
            [*command, "kernel.cpp", "-o", "kernel.so", *row["link_arguments"]],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise RuntimeError(
                f"{shlex.join(command[:1])} cannot compile the kernel:\n{ran.stderr}"
            )
        os.replace(folder / "kernel.so", kept)
    return kept


def _compiler(row: dict[str, Any]) -> list[str]:
    chosen = shlex.split(os.environ.get(row["variable"], ""))
    names = [chosen[0]] if chosen else row["compilers"]
    folders = [None if place == "PATH" else os.path.expandvars(place) for place in row["places"]]
    found = (shutil.which(name, path=folder) for name in names for folder in folders)
    compiler = next(filter(None, found), None)
    if compiler is None:
        raise RuntimeError(f"no compiler: looked for {' and '.join(names)}. {row['install']}")
    arguments = [one.format(arch=_architecture(row), home=row["home"]) for one in row["arguments"]]
    return [compiler, *chosen[1:], *arguments, *_understood(compiler, row["choices"])]


def _understood(compiler: str, choices: list[list[str]]) -> list[str]:
    """Of each group of options the first that this compiler knows."""
    return [option for group in choices for option in [o for o in group if _knows(compiler, o)][:1]]


@functools.cache
def _knows(compiler: str, option: str) -> bool:
    asked = [compiler, option, "-E", "-x", "c++", os.devnull]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _architecture(row: dict[str, Any]) -> str:
    if row["variable"] == "NVCC" and torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        return f"sm_{major}{minor}"
    return str(row["architecture"])


def _cache_folder() -> Path:
    try:
        usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = usual / "kernel-smith" / "shipped"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        pass
    return _own_folder()


@functools.cache
def _own_folder() -> Path:
    """Where nothing can be kept: for the life of this process."""
    return Path(tempfile.mkdtemp(prefix="kernel-smith-"))
