"""The GPUs that candidates can be compiled for, and how much of one a kernel occupies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernel_smith.errors import BadInput

_KIB = 1 << 10


@dataclass(frozen=True, kw_only=True)
class Target:
    """One architecture. Sizes are those of one multiprocessor (AMD: compute unit)."""

    name: str
    kind: Literal["cuda", "hip"]
    warp: int
    """Threads that run in lockstep."""
    shared_bytes: int
    """The most shared memory that one block may ask for."""
    shared_total: int
    """What the blocks on one multiprocessor share, with what the system keeps of it."""
    shared_kept: int
    """What the system keeps of it for each block."""
    registers: int
    """32-bit registers of one multiprocessor, counted for single threads."""
    register_step: int
    """Registers of a thread are handed out in multiples of this."""
    warps: int
    """The most warps at a time."""
    multiprocessors: int
    """Of a common product of this architecture: what programs that ask are told."""
    threads_per_block: int = 1024

    def occupancy(self, warps: int, registers: int, shared_bytes: int) -> float:
        """The share of the multiprocessor's warps that blocks of this size can fill."""
        per_thread = -(-max(registers, 1) // self.register_step) * self.register_step
        by_registers = self.registers // (per_thread * self.warp) // warps
        by_shared = self.shared_total // max(shared_bytes + self.shared_kept, 1)
        blocks = min(by_registers, by_shared, self.warps // warps)
        return blocks * warps / self.warps


def _cuda(name: str, shared_kib: int, multiprocessors: int) -> Target:
    return Target(
        name=name,
        kind="cuda",
        warp=32,
        shared_bytes=shared_kib * _KIB,
        shared_total=(shared_kib + 1) * _KIB,
        shared_kept=_KIB,
        registers=64 * _KIB,
        register_step=8,
        warps=64,
        multiprocessors=multiprocessors,
    )


def _hip(name: str, multiprocessors: int) -> Target:
    return Target(
        name=name,
        kind="hip",
        warp=64,
        shared_bytes=64 * _KIB,
        shared_total=64 * _KIB,
        shared_kept=0,
        registers=4 * 64 * 512,  # four units of 512 registers for each of 64 lanes
        register_step=8,
        warps=32,
        multiprocessors=multiprocessors,
    )


TARGETS = {
    target.name: target
    for target in (
        _cuda("sm_80", 163, 108),
        _cuda("sm_90", 227, 132),
        _cuda("sm_100", 227, 148),
        _hip("gfx90a", 104),
        _hip("gfx942", 304),
    )
}


def find_target(name: str) -> Target:
    """The target of this name. Raises `BadInput` with the names that exist."""
    if name not in TARGETS:
        raise BadInput(
            f"no architecture is called {name!r}", hint=f"choose among {', '.join(TARGETS)}"
        )
    return TARGETS[name]
