"""How each dialect is compiled, by each route.

A `Recipe` is one row: where its compiler is looked for, and the arguments that every build gets.
`recipe(dialect, route)` gives it. The routes are

* `native`: the vendor's own compiler, for the vendor's device;
* `nvidia`: nvcc, against our headers in `compat/`, which give a MACA or HIP source its names and
  waves of 64 threads on an NVIDIA GPU;
* `cpu`: the C++ compiler, against the headers in `simt/`, which emulate a GPU's threads.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernel_smith.errors import BadInput
from kernel_smith.plugins import load_backend, offered_backends

ROUTES = ("native", "nvidia", "cpu")
SOURCE_NAME = "kernel.cpp"
COMPAT = Path(__file__).parent / "compat"
EXTENSION = "-extension"
"""Behind a dialect's name: not a library, but a module of Python's that extends PyTorch."""


@dataclass(frozen=True)
class Recipe:
    """One way to compile. Of each group in `choices`, the first that the compiler knows is used.

    `places` are the folders in which compilers are looked for; `PATH` stands for those on the path,
    and variables are replaced. In arguments, `{arch}` stands for the architecture and `{home}` for
    where the vendor's software is installed.
    """

    variable: str
    compilers: tuple[str, ...]
    install: str
    arguments: tuple[str, ...]
    link_arguments: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...] = ()
    places: tuple[str, ...] = ("PATH",)
    compiler_arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What one compiler of several needs in place of `arguments`."""
    architecture: str = ""
    """The architecture that is compiled for unless another is named; empty for a CPU."""
    home: str = ""
    """The variable that names the vendor's folder, and its usual place: `MACA_PATH=/opt/maca`."""
    environment: tuple[str, ...] = ()
    """Variables that the compiler is to see: `NAME=value`."""
    smallest: str = '#include <cstdint>\nextern "C" int64_t one() { return 1; }\n'
    """A source that must compile, or the compiler itself is at fault."""
    headers: tuple[Path, ...] = ()
    """Folders and files whose content decides what is built."""

    def home_folder(self) -> str:
        """Tell where the vendor's software is on this machine, or would be."""
        variable, _, usual = self.home.partition("=")
        return os.environ.get(variable) or usual


_CPP = Recipe(
    variable="CXX",
    compilers=("g++", "clang++"),
    install="apt-get install g++",
    arguments=(
        "-std=c++17",
        "-O3",
        "-fopenmp",
        # Nobody looks at errno or floating point flags here, and loops are vectorised without them.
        "-fno-math-errno",
        "-fno-trapping-math",
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
)

_CUDA = Recipe(
    variable="NVCC",
    compilers=("nvcc",),
    install="install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), "
    "then put its bin folder on PATH or set CUDA_HOME",
    places=("PATH", "$CUDA_HOME/bin", "$CUDA_PATH/bin", "/usr/local/cuda/bin"),
    # The CUDA runtime is the one that torch has brought: one inside the library would need
    # `dlopen`, which the judge forbids to kernels.
    arguments=(
        *("-x", "cu", "-std=c++17", "-O3", "-shared", "-cudart", "shared", "-arch={arch}"),
        *("--extended-lambda", "--expt-relaxed-constexpr", "-Xptxas", "-v"),
        *("-Xcompiler", "-fPIC,-fdiagnostics-color=never"),
    ),
    link_arguments=("-Xlinker", "-z,defs", "-Xlinker", "-z,noexecstack"),
    architecture="sm_90",
)

_MACA = Recipe(
    variable="MXCC",
    compilers=("mxcc", "cucc"),
    install="install the MACA SDK (https://developer.metax-tech.com), then set MACA_PATH to its "
    "folder (/opt/maca unless chosen otherwise)",
    places=(
        *("$MACA_PATH/mxgpu_llvm/bin", "$MACA_PATH/tools/cu-bridge/bin"),
        *("/opt/maca/mxgpu_llvm/bin", "/opt/maca/tools/cu-bridge/bin", "PATH"),
    ),
    arguments=(
        *("-x", "maca", "-std=c++17", "-O3", "-shared", "-fPIC", "--offload-arch={arch}"),
        *("--maca-path={home}", "-resource-usage", "-fdiagnostics-color=never"),
    ),
    # A look-alike of nvcc, which takes nvcc's arguments and finds the architecture itself.
    compiler_arguments={
        "cucc": (
            *("-x", "cu", "-std=c++17", "-O3", "-shared", "-Xcompiler", "-fPIC"),
            "--resource-usage",
        ),
    },
    link_arguments=("-Wl,-z,defs", "-Wl,-z,noexecstack"),
    architecture="xcore1000",
    home="MACA_PATH=/opt/maca",
)

_HIP = Recipe(
    variable="HIPCC",
    compilers=("hipcc",),
    install="install ROCm (https://rocm.docs.amd.com) or `apt-get install hipcc`, then put hipcc "
    "on PATH or set ROCM_PATH",
    places=("PATH", "$ROCM_PATH/bin", "/opt/rocm/bin"),
    arguments=(
        *("-x", "hip", "-std=c++17", "-O3", "-shared", "-fPIC", "--offload-arch={arch}"),
        *("-Rpass-analysis=kernel-resource-usage", "-fdiagnostics-color=never"),
    ),
    link_arguments=("-Wl,-z,defs", "-Wl,-z,noexecstack"),
    architecture="gfx90a",
    environment=("HIP_PLATFORM=amd",),  # where it finds nvcc it would call that
)

DIALECTS = {"cpp": _CPP, "cuda": _CUDA, "maca": _MACA, "hip": _HIP}
"""How each dialect is compiled natively."""

_EXTENSIONS = tuple(dialect + EXTENSION for dialect in ("cpp", "cuda"))
_RUNTIME_HEADERS = {"maca": "mc_runtime.h", "hip": "hip/hip_runtime.h"}


def recipe(dialect: str, route: str = "native") -> Recipe:
    """Return the row for a dialect and a route."""
    if dialect in _EXTENSIONS:
        return _extension(dialect.removesuffix(EXTENSION), route)
    if dialect in offered_backends() and dialect not in DIALECTS:
        offered: Recipe = load_backend(dialect).recipe
        return offered
    if dialect not in DIALECTS:
        raise BadInput(f"unknown dialect '{dialect}'", hint=f"use one of: {', '.join(DIALECTS)}")
    possible = _routes_of(dialect)
    if route not in possible:
        raise BadInput(
            f"{dialect} has no route '{route}'", hint=f"use one of: {', '.join(possible)}"
        )
    if route == "nvidia":
        return _on_nvidia(dialect)
    return _on_cpu(dialect) if route == "cpu" else DIALECTS[dialect]


def _routes_of(dialect: str) -> tuple[str, ...]:
    if dialect == "cpp":
        return ("native",)
    return tuple(route for route in ROUTES if (dialect, route) != ("cuda", "nvidia"))


def _extension(dialect: str, route: str) -> Recipe:
    from kernel_smith.inline.extension_recipe import extension_recipe

    if route != "native":
        raise BadInput(
            f"extensions of PyTorch in {dialect} need the hardware that they are for",
            hint=f"give the text to kernel_smith.inline.{dialect}, which has other routes",
        )
    return extension_recipe(DIALECTS[dialect])


def _on_nvidia(dialect: str) -> Recipe:
    include = ("-I", str(COMPAT / dialect), "-I", str(COMPAT / "wave"))
    return dataclasses.replace(
        _CUDA,
        # Included first, so that a source without the header has no waves of 32 by accident.
        arguments=(*_CUDA.arguments, *include, "-include", _RUNTIME_HEADERS[dialect]),
        headers=(COMPAT / dialect, COMPAT / "wave"),
    )


def _on_cpu(dialect: str) -> Recipe:
    from kernel_smith.inline import simt

    # To be compiled soon matters more than to run fast; and g++ 12 fails to vectorise some kernels.
    plain = tuple("-O1" if argument == "-O3" else argument for argument in _CPP.arguments)
    return dataclasses.replace(
        _CPP,
        arguments=(*plain, *simt.compiler_arguments(dialect)),
        headers=(Path(simt.__file__).parent,),
    )
