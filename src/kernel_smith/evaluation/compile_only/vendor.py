"""What of a vendor's must be installed for Triton to compile for its GPUs."""

from __future__ import annotations

import importlib.util
import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.compile_only.targets import Kind
from kernel_smith.evaluation.sandbox.confine import installation_of
from kernel_smith.inline.dialects import recipe

_UPSTREAM = "pip install 'triton>=3.2'"


class _Vendor(NamedTuple):
    platform: str
    backend: str
    """What Triton calls its part for the platform."""
    remedy: str


_VENDORS: dict[Kind, _Vendor] = {
    "cuda": _Vendor("CUDA", "nvidia", _UPSTREAM),
    "hip": _Vendor("ROCm", "amd", _UPSTREAM),
    "maca": _Vendor(
        "MACA",
        "metax",
        "install the Triton that MetaX provides for MACA, which pairs with its torch",
    ),
}


class Kit(NamedTuple):
    """What a vendor's compiler needs in the sandbox."""

    variables: tuple[str, ...] = ()
    """Of the environment, as `NAME=value`."""
    readable: tuple[Path, ...] = ()


def require_kit(kind: Kind) -> Kit:
    """Raises `MissingPrerequisite` if Triton, which is there, cannot compile for this platform."""
    vendor = _VENDORS[kind]
    if not _has_backend(vendor.backend):
        raise MissingPrerequisite(
            f"this Triton has no backend for {vendor.platform}", hint=vendor.remedy
        )
    return _maca_kit() if kind == "maca" else Kit()


def _has_backend(name: str) -> bool:
    """Is it a part of Triton, or registered by another package? Importing Triton would be slow."""
    triton = importlib.util.find_spec("triton")
    for folder in (triton and triton.submodule_search_locations) or ():
        if Path(folder, "backends", name).is_dir():
            return True
    return bool(entry_points(group="triton.backends", name=name))


def _maca_kit() -> Kit:
    """MetaX's Triton finds mxcc by MACA_PATH alone, and its torch libraries by LD_LIBRARY_PATH.

    Any sandbox may read the SDK's libraries, but not its compiler.
    """
    maca = recipe("maca")
    home = Path(maca.home_folder())
    if not home.is_dir():
        raise MissingPrerequisite(
            f"MetaX's Triton needs the MACA SDK, which is not in {home}", hint=maca.install
        )
    values = {"MACA_PATH": str(home), "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    return Kit(
        variables=tuple(f"{name}={value}" for name, value in values.items() if value),
        readable=installation_of(home / "mxgpu_llvm" / "bin" / "mxcc"),
    )
