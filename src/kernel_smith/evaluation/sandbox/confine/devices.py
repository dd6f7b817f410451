"""GPUs as the operating system shows them: device files, names, driver. Without torch.

A process that computes on a GPU must be able to use the device files.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CHOICES = (
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    *("MACA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
)
"""The variables by which users choose among several GPUs."""
DRIVER = Path("/proc/driver/nvidia")
FOLDER = Path("/dev")
TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")

_NVIDIA = ("nvidia*", "nvidia-caps/*")
# MetaX and AMD have one file of their own for all GPUs, and those that every graphics card has.
_METAX, _AMD, _GRAPHICS = "mxcd", "kfd", "dri/*"
# Programs look there for what their drivers say about the devices.
_DESCRIPTIONS = ("/sys/devices", "/sys/class/kfd", "/sys/class/drm", "/sys/bus/pci", "/sys/module")
_GPU = re.compile(r"nvidia(\d+)")
_MODEL = re.compile(r"^Model:\s*(\S.*?)\s*$", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*(\d+)", re.MULTILINE)
_VERSION = re.compile(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", re.MULTILINE)
_METAX_MODEL = re.compile(r"^GPU#\d+\s+(\S+)", re.MULTILINE)
_AMD_UNITS = re.compile(r"^simd_count ([1-9]\d*)$", re.MULTILINE)  # a processor has none
_UNKNOWN = "{} GPU of unknown name"


@dataclass(frozen=True)
class Gpus:
    names: tuple[str, ...]
    """One per GPU whose device file is here."""
    driver: str | None
    """The version of the driver; None where none is loaded, or where it does not say."""
    vendor: Literal["NVIDIA", "MetaX", "AMD"] = "NVIDIA"


def nodes() -> tuple[Path, ...]:
    """All that exist here; empty on a machine without such a device."""
    patterns = [*_NVIDIA, _METAX, _AMD]
    if _is_here(_METAX) or _is_here(_AMD):
        patterns.append(_GRAPHICS)
    found = (node for pattern in patterns for node in FOLDER.glob(pattern))
    return tuple(sorted(node for node in found if node.is_char_device()))


def descriptions() -> tuple[Path, ...]:
    """Folders in which the drivers of MetaX and AMD describe the devices; none without them."""
    if not (_is_here(_METAX) or _is_here(_AMD)):
        return ()
    return tuple(path for path in map(Path, _DESCRIPTIONS) if path.exists())


def gpus() -> Gpus:
    """The GPUs that can be opened here. A container may show more names than device files."""
    names = [node.name for node in nodes()]
    numbers = sorted(int(gpu[1]) for name in names if (gpu := _GPU.fullmatch(name)))
    if not numbers and _METAX in names:
        return Gpus(_metax_models() or (_UNKNOWN.format("MetaX"),), None, "MetaX")
    if not numbers and _AMD in names:
        return Gpus(_amd_models() or (_UNKNOWN.format("AMD"),), None, "AMD")
    models = _models()
    unknown = _UNKNOWN.format("NVIDIA")
    return Gpus(tuple(models.get(number, unknown) for number in numbers), _driver_version())


def _is_here(control: str) -> bool:
    return (FOLDER / control).exists()


def _models() -> dict[int, str]:
    """By the number of the device file."""
    models = {}
    for path in DRIVER.glob("gpus/*/information"):
        text = _read(path)
        model, minor = _MODEL.search(text), _MINOR.search(text)
        if model and minor:
            models[int(minor[1])] = model[1]
    return models


def _driver_version() -> str | None:
    found = _VERSION.search(_read(DRIVER / "version"))
    return found[1] if found else None


def _metax_models() -> tuple[str, ...]:
    tool = shutil.which("mx-smi", path=f"{os.environ.get('PATH', '')}:/opt/mxdriver/bin")
    return _listed_by(tool) if tool else ()


@functools.cache
def _listed_by(tool: str) -> tuple[str, ...]:
    """The drivers' own tool takes a while, and answers the same every time."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=30)
        return tuple(_METAX_MODEL.findall(done.stdout))
    return ()


def _amd_models() -> tuple[str, ...]:
    found = [n for n in sorted(TOPOLOGY.glob("*")) if _AMD_UNITS.search(_read(n / "properties"))]
    return tuple(_read(node / "name").strip() or _UNKNOWN.format("AMD") for node in found)


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace")
    return ""
