"""How extensions of PyTorch are compiled: a dialect's own way, with PyTorch's headers beside.

PyTorch is only looked at: whoever compiles need not import it.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import re
import sysconfig
from pathlib import Path

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.inline.dialects import Recipe

MODULE = "kernel_smith_extension"
"""The one name of all modules, so that equal sources share an object."""

_LIBRARIES = ("c10", "torch_cpu", "torch", "torch_python")
_GPU_LIBRARIES = ("c10_cuda", "torch_cuda")
_STANDARD = re.compile(r"-std=(c\+\+\d\d)")
# As PyTorch has it: its own types stand in for the toolkit's operators.
_GPU_DEFINITIONS = (
    *("-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__"),
    *("-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"),
)
_NOT_EXECUTABLE = {False: ("-Wl,-z,noexecstack",), True: ("-Xlinker", "-z,noexecstack")}


def extension_recipe(plain: Recipe) -> Recipe:
    """Return the recipe for extensions, from that for plain libraries of the same dialect."""
    torch, for_gpu = _torch_folder(), bool(plain.architecture)
    standard = _standard(torch)
    arguments = tuple(_STANDARD.sub(f"-std={standard}", argument) for argument in plain.arguments)
    includes = (
        torch / "include",
        torch / "include/torch/csrc/api/include",
        Path(sysconfig.get_path("include")),
    )
    libraries = (*_LIBRARIES, *(_GPU_LIBRARIES if for_gpu else ()))
    here = [name for name in libraries if (torch / f"lib/lib{name}.so").exists()]
    return dataclasses.replace(
        plain,
        arguments=(
            *arguments,
            *(part for folder in includes for part in ("-isystem", str(folder))),
            *("-DTORCH_API_INCLUDE_EXTENSION_H", f"-DTORCH_EXTENSION_NAME={MODULE}"),
            *(_GPU_DEFINITIONS if for_gpu else ()),
        ),
        # Undefined symbols are left open: Python's own are often in no library.
        link_arguments=(
            *_NOT_EXECUTABLE[for_gpu],
            f"-L{torch / 'lib'}",
            *(f"-l{name}" for name in here),
        ),
        smallest="#include <Python.h>\n#include <c10/macros/Export.h>\n",
        install=f"{plain.install}; and Python's headers: apt-get install python3-dev",
        headers=(torch / "version.py",),  # which stands for all of them
    )


@functools.cache
def _torch_folder() -> Path:
    found = importlib.util.find_spec("torch")
    for location in (found and found.submodule_search_locations) or ():
        return Path(location)
    raise MissingPrerequisite(
        "PyTorch is not installed, and its extensions need its headers", hint="pip install torch"
    )


@functools.cache
def _standard(torch: Path) -> str:
    """Return the C++ that this PyTorch compiles extensions with: its headers may need it."""
    text = (torch / "utils/cpp_extension.py").read_text(encoding="utf-8")
    versions = _STANDARD.findall(text)
    return max(versions, default="c++17")
