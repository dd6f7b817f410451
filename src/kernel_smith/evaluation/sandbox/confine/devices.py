"""NVIDIA GPUs as the operating system shows them: device files, names, driver. Without torch.

A process that computes on a GPU must be able to use the device files.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

_PATTERNS = ("nvidia*", "nvidia-caps/*")
_GPU = re.compile(r"nvidia(\d+)")
_MODEL = re.compile(r"^Model:\s*(\S.*?)\s*$", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*(\d+)", re.MULTILINE)
_VERSION = re.compile(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", re.MULTILINE)
_UNKNOWN = "NVIDIA GPU of unknown name"

DRIVER = Path("/proc/driver/nvidia")


@dataclass(frozen=True)
class Gpus:
    names: tuple[str, ...]
    """One per GPU whose device file is here."""
    driver: str | None
    """The version of the driver; None where none is loaded, or where it does not say."""


def nodes() -> tuple[Path, ...]:
    """All that exist here; empty on a machine without such a device."""
    found = (node for pattern in _PATTERNS for node in Path("/dev").glob(pattern))
    return tuple(sorted(node for node in found if node.is_char_device()))


def gpus() -> Gpus:
    """The GPUs that can be opened here. A container may show more names than device files."""
    numbers = sorted(int(gpu[1]) for node in nodes() if (gpu := _GPU.fullmatch(node.name)))
    models = _models()
    return Gpus(tuple(models.get(number, _UNKNOWN) for number in numbers), _driver_version())


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


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace")
    return ""
