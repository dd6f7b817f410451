"""The GPUs that candidates can be compiled for, and how much of one a kernel occupies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernel_smith.errors import BadInput

_KIB = 1 << 10


Kind = Literal["cuda", "hip", "maca"]
"""What Triton calls the vendor's platform."""


@dataclass(frozen=True, kw_only=True)
class Stock:
    """What the blocks on one multiprocessor divide among themselves."""

    shared: int
    """Bytes of shared memory, with what the system keeps of it."""
    shared_kept: int
    """What the system keeps of it for each block."""
    registers: int
    """32-bit registers, counted for single threads."""
    register_step: int
    """Registers of a thread are handed out in multiples of this."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One architecture; AMD calls a multiprocessor compute unit, MetaX AP."""

    name: str
    kind: Kind
    capability: tuple[int, int]
    """CUDA's number for what a GPU can do, or the one that programs are told in its stead."""
    warp: int
    """Threads that run in lockstep."""
    shared_bytes: int
    """The most shared memory that one block may ask for."""
    stock: Stock | None
    """Of one multiprocessor; None where the vendor does not say."""
    warps: int
    """The most warps at a time on one multiprocessor."""
    multiprocessors: int
    """Of a common product of this architecture: what programs that ask are told."""
    threads_per_block: int = 1024

    def occupancy(self, warps: int, registers: int, shared_bytes: int) -> float | None:
        """The share of a multiprocessor's warps that blocks of this size can fill, if known."""
        stock = self.stock
        if stock is None:
            return None
        per_thread = -(-max(registers, 1) // stock.register_step) * stock.register_step
        by_registers = stock.registers // (per_thread * self.warp) // warps
        by_shared = stock.shared // max(shared_bytes + stock.shared_kept, 1)
        blocks = min(by_registers, by_shared, self.warps // warps)
        return blocks * warps / self.warps


def _cuda(major: int, minor: int, shared_kib: int, multiprocessors: int) -> Target:
    return Target(
        name=f"sm_{major}{minor}",
        kind="cuda",
        capability=(major, minor),
        warp=32,
        shared_bytes=shared_kib * _KIB,
        stock=Stock(
            shared=(shared_kib + 1) * _KIB,
            shared_kept=_KIB,
            registers=64 * _KIB,
            register_step=8,
        ),
        warps=64,
        multiprocessors=multiprocessors,
    )


def _hip(name: str, multiprocessors: int) -> Target:
    return Target(
        name=name,
        kind="hip",
        capability=(9, 0),
        warp=64,
        shared_bytes=64 * _KIB,
        stock=Stock(
            shared=64 * _KIB,
            shared_kept=0,
            registers=4 * 64 * 512,  # four units of 512 registers for each of 64 lanes
            register_step=8,
        ),
        warps=32,
        multiprocessors=multiprocessors,
    )


def _maca(name: str, multiprocessors: int) -> Target:
    return Target(
        name=name,
        kind="maca",
        capability=(8, 0),  # MetaX's Triton and torch answer so, to be compatible
        warp=64,
        shared_bytes=64 * _KIB,
        stock=None,
        warps=32,
        multiprocessors=multiprocessors,
    )


TARGETS = {
    target.name: target
    for target in (
        _cuda(8, 0, 163, 108),
        _cuda(9, 0, 227, 132),
        _cuda(10, 0, 227, 148),
        _hip("gfx90a", 104),
        _hip("gfx942", 304),
        _maca("xcore1000", 104),
    )
}


def find_target(name: str) -> Target:
    """The target of this name. Raises `BadInput` with the names that exist."""
    if name not in TARGETS:
        raise BadInput(
            f"no architecture is called {name!r}", hint=f"choose among {', '.join(TARGETS)}"
        )
    return TARGETS[name]
