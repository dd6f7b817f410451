"""What a kernel takes of a GPU, read from what its compiler prints.

`parse_resources` understands `ptxas -v` (nvcc), `-resource-usage` (mxcc) and the remarks of
`-Rpass-analysis=kernel-resource-usage` (hipcc). Lines that are none of these are passed over, and
what a compiler does not say is None.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kernel_smith.inline.dialects import EXTENSION

_NAME_TIMEOUT = 10.0
_ON_THE_CPU = ("cpp", f"cpp{EXTENSION}")


@dataclass(frozen=True)
class KernelResources:
    """One kernel, per thread unless said otherwise; bytes, where it is not a number of something.

    `scalar_registers` belong to a wave. `shared` is what a block takes of shared memory, without
    what is asked for at launch. `waves` is how many waves one compute unit's scheduler can hold.
    """

    name: str
    registers: int | None = None
    scalar_registers: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    shared: int | None = None
    stack: int | None = None
    waves: int | None = None

    @property
    def spill_bytes(self) -> int | None:
        """What is moved to memory and back."""
        if self.spill_stores is None:
            return None
        return self.spill_stores + (self.spill_loads or 0)


def parse_resources(dialect: str, route: str, log: str) -> list[KernelResources]:
    """Return the kernels that a compiler's log tells of, in its order; none for what ran on a
    CPU."""
    if route == "cpu" or dialect in _ON_THE_CPU:
        return []
    if dialect == "hip" and route == "native":
        kernels = _collect(log, _HIP_NAME, _hip_figures)
    else:
        kernels = _collect(log, _NAME, _figures)
    names = _demangled(tuple(name for name, _ in kernels))
    return [
        KernelResources(shown, **figures)
        for shown, (_, figures) in zip(names, kernels, strict=True)
    ]


Figures = dict[str, int]

# mxcc prints the lines of ptxas with words of its own: `maca info : Used 49 MTregisters, ...`.
_NAME = re.compile(
    r"\w+ info\s*: "
    r"(?:Compiling entry function '(?P<entry>[^']+)'|Function properties for (?P<name>\S+))"
)
_FIGURES = {
    "registers": re.compile(r"(\d+) (?:MT)?registers"),
    "scalar_registers": re.compile(r"(\d+) STregisters"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
    "shared": re.compile(r"(\d+) bytes (?:smem|shared mem)"),
    "stack": re.compile(r"(\d+) bytes stack frame"),
    "waves": re.compile(r"staticMaxWarps/PEU\s*[:=]?\s*(\d+)|(\d+) staticMaxWarps/PEU"),
}
_PTXAS_LINE = re.compile(r"(?:\w+ info\s*:|\s+\d+ bytes )")

_HIP_NAME = re.compile(r"remark: (?:\S+:\d+:\d+: )?Function Name: (?P<name>\S+)")
_HIP_FIGURES = {
    "registers": re.compile(r"\bVGPRs: (\d+)"),
    "scalar_registers": re.compile(r"\b(?:Total)?SGPRs: (\d+)"),
    "spilled": re.compile(r"\bVGPRs Spill: (\d+)"),
    "shared": re.compile(r"LDS Size \[bytes/block\]: (\d+)"),
    "stack": re.compile(r"ScratchSize \[bytes/lane\]: (\d+)"),
    "waves": re.compile(r"Occupancy \[waves/SIMD\]: (\d+)"),
}
_REGISTER_BYTES = 4


def _collect(
    log: str, name_pattern: re.Pattern[str], figures_of: Callable[[str], Figures]
) -> list[tuple[str, Figures]]:
    """Return each kernel's mangled name with the figures on the lines from its name to the next
    one."""
    found: dict[str, Figures] = {}
    current: Figures | None = None
    for row in log.splitlines():
        if match := name_pattern.search(row):
            name = next(text for text in match.groupdict().values() if text)
            current = found.setdefault(name, {})
        if current is not None:
            current.update(figures_of(row))
    # A device function that was not inlined has properties, but uses its caller's registers.
    return [(name, figures) for name, figures in found.items() if "registers" in figures]


def _figures(row: str) -> Figures:
    return _search(row, _FIGURES) if _PTXAS_LINE.match(row) else {}


def _hip_figures(row: str) -> Figures:
    if "remark: " not in row:
        return {}
    figures = _search(row, _HIP_FIGURES)
    # LLVM counts registers that do not fit; each is stored and loaded again at least once.
    spilled = figures.pop("spilled", None)
    if spilled is not None:
        figures["spill_stores"] = figures["spill_loads"] = spilled * _REGISTER_BYTES
    return figures


def _search(row: str, patterns: dict[str, re.Pattern[str]]) -> Figures:
    matches = {key: pattern.search(row) for key, pattern in patterns.items()}
    return {
        key: int(next(group for group in match.groups() if group))
        for key, match in matches.items()
        if match
    }


@functools.lru_cache(maxsize=256)
def _demangled(names: tuple[str, ...]) -> Iterable[str]:
    """Return the names as the source spells them, where the linker's tools are installed."""
    if not any(name.startswith("_Z") for name in names):
        return names
    try:
        answer = subprocess.run(
            ["c++filt"],
            input="\n".join(names),
            capture_output=True,
            text=True,
            timeout=_NAME_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return names
    lines = answer.stdout.splitlines()
    return tuple(lines) if len(lines) == len(names) else names
