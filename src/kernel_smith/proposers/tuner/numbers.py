"""Which numbers are for speed and which are part of the maths, and what values they may take.

A number is taken for a matter of speed where the language says so (`num_warps=`, `schedule(...)`,
`#pragma GCC unroll`), where its name does (`kTile`, `BLOCK_M`, `unroll`), or where it is a named
integer constant that is a power of two and whose name does not speak of the problem (`kBits`,
`HEAD_DIM`, `stride`). Floating point numbers, bare integers in expressions and constants of other
values are left alone. The judge has the last word: a wrong guess costs an evaluation.
"""

from __future__ import annotations

import os
import re

from kernel_smith.proposers.tuner.space import Kind, Role, Value

_SPEED_WORDS = """
    block blocks tile tiles chunk chunks unroll lanes lane strip strips panel panels warps stages
    threads workers split splits ahead prefetch batch group bm bn bk mc nc kc mr nr mb nb kb
"""
_MATHS_WORDS = """
    bits bit mask shift bias magic mantissa exponent seed dim dims channel channels head heads
    feature features hidden kernel filter stride pad padding dilation axis eps page pages expert
    experts class classes vocab vocabulary positions taps radix base alignment align code
    levels zero offset max min most limit rank ndim bytes byte factor numel
"""
_SPEED = frozenset(_SPEED_WORDS.split())
_MATHS = frozenset(_MATHS_WORDS.split())
# `XBLOCK` and `xnumel`, as the compiler names extents along an axis, are two words.
_WORDS = re.compile(r"[XYZ](?=BLOCK)|[xyz](?=numel)|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_LARGEST_TILE = 1 << 16
_WINDOW = 16
_FIXED: dict[Role, tuple[int, ...]] = {
    Role.WARPS: (1, 2, 4, 8, 16, 32),
    Role.STAGES: (1, 2, 3, 4, 5),
    Role.UNROLL: (1, 2, 4, 8, 16, 32),
    Role.CHUNK: (1, 2, 4, 8, 16, 32, 64),
    Role.LANES: (2, 4, 8, 16, 32),
    Role.COLLAPSE: (1, 2),
    Role.ALIGNMENT: (16, 32, 64),
}
_OPTIONS = {
    "num_warps": Role.WARPS,
    "num_stages": Role.STAGES,
    "loop_unroll_factor": Role.UNROLL,
}


def words(name: str) -> tuple[str, ...]:
    """`kTileRows` and `TILE_ROWS` as ("tile", "rows"); the k of a constant is no word."""
    found = [word.lower() for word in _WORDS.findall(name)]
    return tuple(
        found[1:] if len(found) > 1 and name.startswith("k") and found[0] == "k" else found
    )


def option_role(keyword: str) -> Role | None:
    """Return the role of a keyword that Triton itself knows."""
    return _OPTIONS.get(keyword)


def is_for_speed(name: str, value: int) -> bool:
    """Tell whether a named integer constant may be tuned."""
    found = set(words(name))
    if found & _SPEED:
        return 1 <= value <= _LARGEST_TILE
    return not found & _MATHS and 2 <= value <= _LARGEST_TILE and is_power_of_two(value)


def has_speed_word(name: str) -> bool:
    return bool(set(words(name)) & _SPEED)


def constant_role(name: str) -> Role:
    """Return the role of a named constant."""
    found = set(words(name))
    if "warps" in found:
        return Role.WARPS
    if "stages" in found:
        return Role.STAGES
    return Role.UNROLL if "unroll" in found else Role.TILE


def is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def domain(role: Role, current: Value) -> tuple[Value, ...]:
    """Return what a number may become; the current value is always among it."""
    if isinstance(current, str):
        return (current,)
    if role is Role.TILE:
        values = _around(current)
    elif role is Role.THREADS:
        cores = os.cpu_count() or 1
        values = {1 << power for power in range(cores.bit_length())} | {cores}
    else:
        values = set(_FIXED[role])
    return tuple(sorted(values | {current}))


def kind(values: tuple[Value, ...]) -> Kind:
    if not all(isinstance(value, int) for value in values):
        return Kind.CHOICE
    return Kind.LOG2 if all(is_power_of_two(int(value)) for value in values) else Kind.INTEGER


def _around(current: int) -> set[int]:
    if is_power_of_two(current):
        low, high = max(1, current // _WINDOW), min(_LARGEST_TILE, current * _WINDOW)
        return {1 << power for power in range(low.bit_length() - 1, high.bit_length())}
    if current <= 16:
        return set(range(1, 2 * current + 1))
    return {current * parts // 4 for parts in (1, 2, 3, 4, 6, 8, 16)}
