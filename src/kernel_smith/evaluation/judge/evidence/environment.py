"""What the measurements were taken on."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import time
from pathlib import Path

import torch

import kernel_smith
from kernel_smith.errors import MissingPrerequisite
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.records import Environment

_STORE_BUFFER = 16 << 10
_STORE_REPEATS = 200
_STORE_MARGIN = 4.0
_FILLED_BUFFER, _FILLED_REPEATS = 32 << 20, 5  # larger than the caches of a core
_EXTENSIONS = (
    "sse4_2",
    "avx",
    "fma",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_bf16",
    "avx512_fp16",
    "amx_bf16",
    "asimd",
    "asimdhp",
    "asimddp",
    "bf16",
    "sve",
    "sve2",
)


@functools.cache
def describe_machine() -> Environment:
    try:
        compiler = find_toolchain("cpp").version
    except MissingPrerequisite:
        compiler = "none"
    return Environment(
        machine=platform.machine(),
        processor=processor_name(),
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        torch=torch.__version__,
        compiler=compiler,
        kernel_smith=kernel_smith.__version__,
        instruction_set=instruction_set(),
        caches=cache_sizes(),
    )


def instruction_set() -> str:
    """The extensions that decide how wide vectors are, as the kernel names them."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip().lower() in ("flags", "features"):
                known = set(value.split())
                return " ".join(name for name in _EXTENSIONS if name in known)
    return ""


def cache_sizes() -> str:
    """Of the first core, from the nearest to the last."""
    found: dict[str, str] = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with contextlib.suppress(OSError):
            kind = (folder / "type").read_text().strip()
            if kind != "Instruction":
                level = (folder / "level").read_text().strip()
                found[f"L{level}"] = (folder / "size").read_text().strip()
    return ", ".join(f"{level} {size}" for level, size in sorted(found.items()))


def processor_name() -> str:
    """The model name as the kernel tells it, with the number of usable cores."""
    fields: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    arm = f"ARM implementer {fields.get('CPU implementer')} part {fields.get('CPU part')}"
    name = fields.get("model name") or (arm if "CPU part" in fields else platform.processor())
    return f"{name or 'unknown'}, {os.cpu_count()} cores"


@functools.cache
def store_bytes_per_second() -> float:
    """A rate that no core exceeds: several times what this one stores to its nearest cache."""
    buffer = torch.empty(_STORE_BUFFER, dtype=torch.uint8)
    best = float("inf")
    for _ in range(_STORE_REPEATS):
        begin = time.perf_counter()
        buffer.fill_(1)
        best = min(best, time.perf_counter() - begin)
    return _STORE_MARGIN * max(_STORE_BUFFER / best, 64e9)


@functools.cache
def fill_bytes_per_second() -> float:
    """The rate at which one core fills memory that it has, but not in its caches."""
    buffer = torch.empty(_FILLED_BUFFER, dtype=torch.uint8).fill_(0)
    best = float("inf")
    for _ in range(_FILLED_REPEATS):
        begin = time.perf_counter()
        buffer.fill_(1)
        best = min(best, time.perf_counter() - begin)
    return _FILLED_BUFFER / best
